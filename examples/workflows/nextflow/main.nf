// Simulates the members of an ensemble, then analyses them: nextflow run main.nf

params.members = 2
params.seconds = 60 // time limit of the first attempt
params.steps = "${projectDir}/../steps"

process simulate {
    // 124: the time limit ended the job, and its checkpoint was staged out. Any other failure is one of the program.
    errorStrategy { task.exitStatus == 124 ? 'retry' : 'finish' }
    maxRetries 4

    input:
    val member

    output:
    path "result/heat-${member}.txt"

    // Each attempt has a directory of its own, so the checkpoint is outside of it.
    script:
    def checkpoint = "${launchDir}/checkpoints/${member}"
    def seconds = params.seconds * task.attempt
    """
    mkdir -p '${checkpoint}'
    ln -s '${checkpoint}' checkpoint
    forebay run --json --time 0:0:${seconds} \
        '${params.steps}/simulate.sh' -- '${params.steps}/simulate.py' ${member} >run.json ||
        '${params.steps}/stage-out-again.sh' \$? run.json
    """
}

process analyse {
    publishDir "${launchDir}", mode: 'copy'

    input:
    path results

    output:
    path 'summary.csv'

    // Nextflow gives links as inputs. The list has the files themselves.
    script:
    """
    realpath ${results} | sed 's|.*|"&" \$DW_JOB_STRIPED/members/|' >inputs.list
    forebay run --json '${params.steps}/analyse.sh' -- '${params.steps}/analyse.py' >run.json ||
        '${params.steps}/stage-out-again.sh' \$? run.json
    """
}

workflow {
    channel.of(1..params.members) | simulate | collect | analyse
}

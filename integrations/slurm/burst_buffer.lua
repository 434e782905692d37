-- Slurm's burst buffers through the plugin burst_buffer/lua: each function calls Forebay's dw_wlm_cli, which does the
-- work. For Slurm 22.05 and later; functions of later versions get further arguments, which are not needed.
-- docs/how-to/site-slurm.md shows how to use it.

local DIRECTORY = "/usr/bin/" -- of dw_wlm_cli and dwstat

-- Slurm 24.05 and later ask for the result of a staging from time to time.
local POLLS = slurm.SLURM_BB_BUSY ~= nil

local function quoted(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end

-- Runs a command line. A program that was killed, or whose exit code is not known, has failed.
local function run(line)
  local pipe, problem = io.popen(line .. " 2>&1; printf '\\nforebay-exit %d\\n' \"$?\"")
  if pipe == nil then
    return slurm.ERROR, "cannot start dw_wlm_cli: " .. tostring(problem)
  end
  local text = pipe:read("*a") or ""
  pipe:close()
  local output, code = text:match("^(.-)\nforebay%-exit (%d+)\n$")
  if code == nil then
    return slurm.ERROR, "dw_wlm_cli was killed"
  end
  output = output:gsub("%s+$", "")
  if code ~= "0" then
    return slurm.ERROR, output ~= "" and output or ("dw_wlm_cli ended with code " .. code)
  end
  return slurm.SUCCESS, output
end

local function words(program, ...)
  local line = quoted(DIRECTORY .. program)
  for _, word in ipairs({ ... }) do
    line = line .. " " .. quoted(word)
  end
  return line
end

local function call(name, ...)
  return run(words("dw_wlm_cli", "--function", name, ...))
end

-- A staging: as a whole, or as far as it is after a few seconds.
local function stage(name, job_id, job_script)
  if not POLLS then
    return call(name, "--token", job_id, "--job", job_script)
  end
  local code, output = call(name, "--token", job_id, "--job", job_script, "--poll")
  if code == slurm.SUCCESS and output == "BUSY" then
    return code, slurm.SLURM_BB_BUSY
  end
  return code, output
end

-- The same without the word that says that it goes on, which Slurm asks for later.
local function begun(name, job_id, job_script)
  local code, output = stage(name, job_id, job_script)
  return code, code == slurm.ERROR and output or ""
end

-- Slurm 24.05 and later name the nodes of the job; before, squeue does.
local function nodes_of(job_id, job_info)
  local list = type(job_info) ~= "nil" and job_info.nodes or nil
  if list == nil or list == "" then
    local code, output = run("squeue -h -o %N -j " .. quoted(job_id))
    if code ~= slurm.SUCCESS then
      return nil, output
    end
    list = output
  end
  local code, output = run("scontrol show hostnames " .. quoted(list))
  if code ~= slurm.SUCCESS or output == "" then
    return nil, "the nodes of the job are not known: " .. output
  end
  return output
end

function slurm_bb_job_process(job_script)
  return call("job_process", "--job", job_script)
end

function slurm_bb_pools()
  return call("pools")
end

function slurm_bb_setup(job_id, uid, gid, pool, bb_size, job_script)
  -- A job that only uses persistent allocations asks for no pool.
  local capacity = pool ~= "(null)" and pool ~= "" and (pool .. ":" .. bb_size) or "0"
  return call(
    "setup", "--token", job_id, "--caller", "SLURM", "--user", uid, "--groupid", gid,
    "--capacity", capacity, "--job", job_script
  )
end

function slurm_bb_data_in(job_id, job_script)
  return begun("data_in", job_id, job_script)
end

function slurm_bb_test_data_in(job_id, job_script)
  return stage("data_in", job_id, job_script)
end

function slurm_bb_real_size(job_id)
  local code, output = call("real_size", "--token", job_id)
  if code == slurm.SUCCESS then
    output = output:match('"capacity":(%d+)') or ""
  end
  return code, output
end

function slurm_bb_paths(job_id, job_script, path_file)
  return call("paths", "--token", job_id, "--job", job_script, "--pathfile", path_file)
end

function slurm_bb_pre_run(job_id, job_script, _, _, job_info)
  local nodes, problem = nodes_of(job_id, job_info)
  if nodes == nil then
    return slurm.ERROR, problem
  end
  local line = words(
    "dw_wlm_cli", "--function", "pre_run", "--token", job_id, "--job", job_script,
    "--nodehostnamefile", "/dev/stdin"
  )
  return run("printf '%s\\n' " .. quoted(nodes) .. " | " .. line)
end

function slurm_bb_post_run(job_id, job_script)
  return call("post_run", "--token", job_id, "--job", job_script)
end

function slurm_bb_data_out(job_id, job_script)
  return begun("data_out", job_id, job_script)
end

function slurm_bb_test_data_out(job_id, job_script)
  return stage("data_out", job_id, job_script)
end

function slurm_bb_job_teardown(job_id, job_script, hurry)
  if hurry == "true" then
    return call("teardown", "--token", job_id, "--job", job_script, "--hurry")
  end
  return call("teardown", "--token", job_id, "--job", job_script)
end

-- The words after "scontrol show bbstat"; later versions of Slurm put the IDs of user and group before them.
function slurm_bb_get_status(...)
  local asked = { ... }
  if #asked >= 2 and asked[1]:match("^%d+$") and asked[2]:match("^%d+$") then
    table.remove(asked, 1)
    table.remove(asked, 1)
  end
  return run(words("dwstat", (table.unpack or unpack)(asked)))
end

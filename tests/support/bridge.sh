# shellcheck shell=bash
# Hosts on one bridge, for the scripts that make hosts out of namespaces. They source this file as the first
# process of their own network namespace, so no name or address here can meet those of the machine.

make_bridge() { # make_bridge ADDRESS/PREFIX: of this host
    mount -t tmpfs none /run # named network namespaces, and what daemons of this host put there
    mkdir -p /run/netns
    ip -batch - <<END
link set lo up
link add bridge type bridge
address add $1 dev bridge
link set bridge up
END
}

mac_of() { # mac_of NUMBER: of the eth0 of nNUMBER
    printf '02:00:00:00:00:%02x' "$1"
}

plug_in() { # plug_in NUMBER ADDRESS/PREFIX: a network namespace nNUMBER, whose eth0 is behind the bridge's portNUMBER
    ip netns add "n$1"
    ip -batch - <<END
link add port$1 type veth peer name eth0 address $(mac_of "$1") netns n$1
link set port$1 master bridge up
END
    ip -n "n$1" -batch - <<END
address add $2 dev eth0
link set eth0 up
link set lo up
END
}

introduce() { # introduce COUNT SUBNET: each of n1 to nCOUNT has the hardware addresses of all others
    local number other
    for ((number = 1; number <= $1; number++)); do
        for ((other = 1; other <= $1; other++)); do
            [ "$number" = "$other" ] ||
                echo "neigh replace $2.$other lladdr $(mac_of "$other") dev eth0 nud permanent"
        done | ip -n "n$number" -batch -
    done
}

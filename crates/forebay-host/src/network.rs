//! Finds addresses and ports of this machine, and tests whether others accept connections.
//! Never reserves a port: another program may take a free one. Sends no data to what it tests.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::time::Duration;

use crate::{Result, system, with_context};

/// A port for looking up routes; nothing is sent to it.
const DISCARD: u16 = 9;
/// Ports that programs may listen on. Linux gives connections ports from 32768 on (ip(7), `ip_local_port_range`).
const PORT_MIN: u16 = 10_000;
const PORT_MAX: u16 = 32_000;
const PORT_TRIES: usize = 64;

/// The address of this machine from which it reaches `peer`, a host name or an address.
///
/// # Errors
/// If the name is unknown, or no route leads there.
pub fn address_towards(peer: &str) -> Result<IpAddr> {
    let found = addresses_of(peer)?.into_iter().find_map(|address| {
        let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((address, DISCARD)).ok()?; // sends nothing
        socket.local_addr().ok().map(|local| local.ip())
    });
    let unreachable = || std::io::Error::other("no route leads there");
    with_context(found.ok_or_else(unreachable), "find a route to", Path::new(peer))
}

/// The addresses of a host name, IPv4 first.
///
/// # Errors
/// If the name is unknown.
pub fn addresses_of(name: &str) -> Result<Vec<IpAddr>> {
    let found = with_context((name, 0).to_socket_addrs(), "find the address of", Path::new(name))?;
    let mut found: Vec<_> = found.map(|socket| socket.ip()).collect();
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    Ok(found)
}

/// A port of this address that no program uses now. It is not one of those that the kernel gives to connections, so
/// that it stays free for a while.
///
/// # Errors
/// If the address is not one of this machine, or all ports that were tried are in use.
pub fn free_port(address: IpAddr) -> Result<u16> {
    let path = address.to_string();
    let mut found = Err(std::io::ErrorKind::AddrInUse.into());
    for _ in 0..PORT_TRIES {
        let random = u16::from_ne_bytes(system::random_bytes()?);
        let port = PORT_MIN + random % (PORT_MAX - PORT_MIN);
        found = TcpListener::bind((address, port)).map(|_| port);
        if found.is_ok() {
            break;
        }
    }
    with_context(found, "listen on", Path::new(&path))
}

/// Whether the machine of this address answers a new connection within `time_max`, be it with a refusal.
pub fn is_reachable(address: SocketAddr, time_max: Duration) -> bool {
    match TcpStream::connect_timeout(&address, time_max) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
    }
}

/// Whether a program accepts connections at this address within `time_max`.
pub fn accepts(address: SocketAddr, time_max: Duration) -> bool {
    TcpStream::connect_timeout(&address, time_max).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_from_itself_on_a_port_that_can_be_used() {
        let here = address_towards("127.0.0.1").expect("address");
        assert_eq!(here.to_string(), "127.0.0.1");
        let port = free_port(here).expect("port");
        assert!((PORT_MIN..PORT_MAX).contains(&port));
        let address = SocketAddr::new(here, port);
        assert!(!accepts(address, Duration::from_secs(1)));
        assert!(is_reachable(address, Duration::from_secs(1)), "a refusal is an answer");
        let _listener = TcpListener::bind(address).expect("free");
        assert!(accepts(address, Duration::from_secs(1)));
        assert!(is_reachable(address, Duration::from_secs(1)));
    }

    /// TCP connects to no group of machines, in any network.
    #[test]
    fn address_of_no_machine_is_not_reachable() {
        assert!(!is_reachable(([224, 0, 0, 1], 1).into(), Duration::from_secs(1)));
    }

    #[test]
    fn unknown_names_and_foreign_addresses_are_errors() {
        addresses_of("no-such-host.invalid").expect_err("unknown");
        free_port("192.0.2.1".parse().expect("address")).expect_err("not ours");
    }
}

//! TCP over the loopback device (tcp(7), 127.0.0.1). Two neighbours share a connection that carries
//! bytes one way: the receiving kernel answers each with a segment that only acknowledges.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_linger, set_socket_timeout, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, acceptfrom_with, bind, connect,
    getsockname, listen, socket_with,
};

use crate::ring::link::{CallContext, CallError, ChannelPlace, Link};

/// The loopback device, and a port that the kernel chooses.
const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// Connections that wait to be accepted: ours, and one of a stranger.
const BACKLOG: i32 = 1;

/// After this time a connection that is not made is taken for one that a firewall drops.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes through TCP connections over loopback.
pub struct TcpLoopback;

impl Link for TcpLoopback {
    type End = OwnedFd;

    /// Connects to a listener that is closed on return: no port can be connected to later.
    fn channel(_: &ChannelPlace) -> Result<(OwnedFd, OwnedFd), CallError> {
        let listener = tcp_socket()?;
        bind(&listener, &ANY_PORT).in_call("bind")?;
        listen(&listener, BACKLOG).in_call("listen")?;
        let sender = connect_to(&getsockname(&listener).in_call("getsockname")?)?;
        let receiver = accept_from(&listener, &getsockname(&sender).in_call("getsockname")?)?;
        Ok((sender, receiver))
    }
}

fn tcp_socket() -> Result<OwnedFd, CallError> {
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .in_call("socket")
}

/// Makes a connection that sends each byte at once (TCP_NODELAY).
fn connect_to(address: &SocketAddrAny) -> Result<OwnedFd, CallError> {
    let socket = tcp_socket()?;
    reset_at_close(&socket)?;
    set_tcp_nodelay(&socket, true).in_call("setsockopt")?;
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_TIMEOUT)).in_call("setsockopt")?;
    connect(&socket, address).in_call("connect")?;
    set_socket_timeout(&socket, Timeout::Send, None).in_call("setsockopt")?;
    Ok(socket)
}

/// Accepts the connection from `peer`, and closes those of others who found the port meanwhile.
fn accept_from(listener: &OwnedFd, peer: &SocketAddrAny) -> Result<OwnedFd, CallError> {
    loop {
        let (socket, address) =
            acceptfrom_with(listener, SocketFlags::CLOEXEC).in_call("accept")?;
        if address.as_ref() == Some(peer) {
            reset_at_close(&socket)?;
            return Ok(socket);
        }
    }
}

/// Makes the last close reset the connection, whoever does it: else the end that is closed first
/// would hold its port for a minute (TIME_WAIT), and many rings would use up all ports.
fn reset_at_close(socket: &OwnedFd) -> Result<(), CallError> {
    set_socket_linger(socket, Some(Duration::ZERO)).in_call("setsockopt")
}

/// Explains why a connection over loopback was refused, where the errno tells.
pub fn loopback_hint(errno: Errno) -> Option<String> {
    let hint = match errno {
        Errno::NETUNREACH => {
            "the loopback device of this network namespace is down (as root: ip link set lo up)"
        }
        Errno::ADDRINUSE | Errno::ADDRNOTAVAIL => {
            "no port is free (sysctl net.ipv4.ip_local_port_range)"
        }
        Errno::AFNOSUPPORT => "this kernel was built without IPv4 (CONFIG_INET)",
        // Of connect: nothing had answered at the end of its timeout.
        Errno::INPROGRESS | Errno::CONNREFUSED | Errno::TIMEDOUT => {
            "a firewall stops packets on the loopback device"
        }
        _ => return None,
    };
    Some(hint.to_string())
}

#[cfg(test)]
mod tests {
    use rundata::ring::MemberKind;
    use rustix::net::getpeername;
    use rustix::net::sockopt::tcp_nodelay;

    use super::*;
    use crate::ring::build::shared_area;
    use crate::ring::link::LinkEnd;

    fn channel() -> (OwnedFd, OwnedFd) {
        let place = ChannelPlace {
            area: shared_area(1, false).unwrap(),
            kind: MemberKind::Thread,
            to: 0,
            room: 1,
        };
        TcpLoopback::channel(&place).unwrap()
    }

    fn port(socket: &OwnedFd) -> u16 {
        SocketAddrV4::try_from(getsockname(socket).unwrap()).unwrap().port()
    }

    /// Returns the states of all sockets between the two ports, or from one of them to none, as
    /// hexadecimal numbers of /proc/net/tcp: 01 is established, 06 waits, 0A listens.
    fn states(ports: [u16; 2]) -> Vec<String> {
        let [one, two] = ports.map(|port| format!("0100007F:{port:04X}"));
        let nobody = "00000000:0000".to_string();
        let text = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut states = Vec::new();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_local = [&one, &two].iter().any(|end| *end == fields[1]);
            let is_remote = [&one, &two, &nobody].iter().any(|end| *end == fields[2]);
            if is_local && is_remote {
                states.push(fields[3].to_string());
            }
        }
        states
    }

    #[test]
    fn a_connection_leaves_neither_a_listener_nor_a_port_that_waits() {
        for is_sender_first in [true, false] {
            let (mut sender, mut receiver) = channel();
            assert!(tcp_nodelay(&sender).unwrap());
            let ports = [port(&sender), port(&receiver)];
            assert_eq!(states(ports), ["01", "01"]);
            sender.send(7).unwrap();
            assert_eq!(receiver.receive(), Ok(7));
            let (first, second) =
                if is_sender_first { (sender, receiver) } else { (receiver, sender) };
            drop(first);
            drop(second);
            assert_eq!(states(ports), [""; 0]);
        }
    }

    /// The last token is read although the sender has gone.
    #[test]
    fn a_reset_takes_no_byte_away() {
        let (mut sender, mut receiver) = channel();
        sender.send(7).unwrap();
        drop(sender);
        assert_eq!(receiver.receive(), Ok(7));
        assert!(receiver.receive().is_err(), "its neighbour is gone");
    }

    #[test]
    fn a_stranger_who_connects_first_is_not_taken_for_the_neighbour() {
        let listener = tcp_socket().unwrap();
        bind(&listener, &ANY_PORT).unwrap();
        listen(&listener, BACKLOG).unwrap();
        let address = getsockname(&listener).unwrap();
        let stranger = connect_to(&address).unwrap();
        let sender = connect_to(&address).unwrap();
        let receiver = accept_from(&listener, &getsockname(&sender).unwrap()).unwrap();
        assert_eq!(getpeername(&receiver).unwrap(), getsockname(&sender).ok());
        drop(stranger);
    }
}

//! A pair of virtual Ethernet devices in a network namespace that ends with the calling process.
//! The kernel handles the reception of a frame at one end on the CPU that sends it at the other
//! (drivers/net/veth.c).

use std::ffi::{c_int, c_ushort};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::thread::UnshareFlags;

use super::check;
use super::ipc::own_namespace;

/// IEEE 802 Local Experimental Ethertype 1: no other protocol uses it.
const ETHERTYPE: u16 = 0x88b5;

/// Payload of a ping (ping(8)).
const PAYLOAD_BYTES: usize = 56;

/// VETH_INFO_PEER of linux/veth.h.
const VETH_INFO_PEER: u16 = 1;

/// IFLA_INFO_KIND and IFLA_INFO_DATA of linux/if_link.h.
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;

/// Sockets at both ends of the pair.
#[derive(Debug)]
pub struct VethPair {
    sender: OwnedFd,
    receiver: OwnedFd,
}

impl VethPair {
    /// Moves the calling process, which must be single-threaded, into a new network namespace and
    /// creates the pair there. The kernel removes both when the process has ended.
    pub fn in_own_namespace() -> Result<Self, Errno> {
        own_namespace(UnshareFlags::NEWNET)?;
        // Otherwise the kernel sends a few packets when the ends come up. A failure is tolerable.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        make_pair()?;
        // A raw socket sends the frame with its header as it is.
        let sender = packet_socket(SocketType::RAW, SocketFlags::empty())?;
        let receiver = packet_socket(SocketType::DGRAM, SocketFlags::NONBLOCK)?;
        bind(&sender, "sw0")?;
        bind(&receiver, "sw1")?;
        Ok(Self { sender, receiver })
    }

    /// Sends a frame to the other end; when this returns it has arrived or is lost.
    pub fn send(&self) -> Result<(), Errno> {
        // To all, from an address of zeros.
        let mut frame = [0_u8; 14 + PAYLOAD_BYTES];
        frame[..6].fill(0xff);
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        send(&self.sender, &frame, SendFlags::empty()).map(|_| ())
    }

    /// Receives all frames that have arrived; returns their number.
    pub fn take_all(&self) -> u32 {
        let mut frames = 0;
        let mut frame = [0_u8; 2 * PAYLOAD_BYTES];
        while recv(&self.receiver, &mut frame, RecvFlags::empty()).is_ok() {
            frames += 1;
        }
        frames
    }
}

/// Opens a packet socket, which receives nothing until it is bound to a protocol.
fn packet_socket(kind: SocketType, more: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::PACKET, kind, SocketFlags::CLOEXEC | more, None)
}

fn bind(socket: &OwnedFd, device: &str) -> Result<(), Errno> {
    // SAFETY: zeroes are a valid address.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as c_ushort;
    address.sll_protocol = ETHERTYPE.to_be();
    address.sll_ifindex = name_to_index(socket, device)? as c_int;
    let bytes = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is valid for as many bytes as are named.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) }).map(|_| ())
}

/// Creates sw0 and its peer sw1, both up (rtnetlink(7)).
fn make_pair() -> Result<(), Errno> {
    let name = attribute(libc::IFLA_IFNAME, &[b"sw0\0"]);
    let peer_name = attribute(libc::IFLA_IFNAME, &[b"sw1\0"]);
    // The peer cannot come up before sw0 exists (veth_open: ENOTCONN).
    let peer = attribute(VETH_INFO_PEER, &[&link(0, false), &peer_name]);
    let kind = attribute(IFLA_INFO_KIND, &[b"veth\0"]);
    let pair = attribute(libc::IFLA_LINKINFO, &[&kind, &attribute(IFLA_INFO_DATA, &[&peer])]);
    let (new, create) = (libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    ask_kernel(new, create, &[&link(0, true), &name, &pair])?;
    let socket = packet_socket(SocketType::DGRAM, SocketFlags::empty())?;
    let far = name_to_index(socket, "sw1")? as c_int;
    ask_kernel(libc::RTM_SETLINK, 0, &[&link(far, true)])
}

/// Builds the ifinfomsg of a device; `index` is 0 for a new one. Fields: family, padding and type,
/// index, flags, which of them change.
fn link(index: c_int, is_up: bool) -> Vec<u8> {
    let up = if is_up { libc::IFF_UP } else { 0 };
    [0, index, up, up].into_iter().flat_map(c_int::to_ne_bytes).collect()
}

/// Builds an rtattr: length without padding, type, content, padding to four bytes.
fn attribute(kind: u16, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let length = 4 + content.len() as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &content].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Sends a message to the kernel by rtnetlink and reads its answer.
fn ask_kernel(kind: u16, flags: c_int, content: &[&[u8]]) -> Result<(), Errno> {
    let content = content.concat();
    // nlmsghdr: length, type and flags, sequence, port.
    let length = 16 + content.len() as u32;
    let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let head = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]];
    // NETLINK_ROUTE is protocol 0.
    let close = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, close, None)?;
    // Unconnected, it goes to the kernel, which answers before the sending is over.
    send(&socket, &[&head.concat()[..], &content].concat(), SendFlags::empty())?;
    let mut answer = [0_u8; 1024];
    let (got, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    // nlmsgerr behind the header of 16 bytes: 0, or an errno below it.
    let error = answer[..got].get(16..20).and_then(|error| error.try_into().ok());
    match error.map(i32::from_ne_bytes).ok_or(Errno::PROTO)? {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(-error)),
    }
}

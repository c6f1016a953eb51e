//! A wire of the calling process's own: a pair of virtual Ethernet devices in a network namespace that
//! ends with it. A frame that is sent at one end is received at the other by the kernel's packet
//! handling, on the CPU that sends it (drivers/net/veth.c).

use std::ffi::{c_int, c_ushort};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::errno::{check, last_errno};
use super::ipc::own_namespace;

/// IEEE 802 Local Experimental Ethertype 1: nobody else listens for it.
const ETHERTYPE: u16 = 0x88b5;

/// What a ping carries (ping(8)).
const PAYLOAD_BYTES: usize = 56;

/// VETH_INFO_PEER of linux/veth.h.
const VETH_INFO_PEER: u16 = 1;

/// IFLA_INFO_KIND and IFLA_INFO_DATA of linux/if_link.h.
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;

/// Both ends of the wire.
#[derive(Debug)]
pub struct Wire {
    sender: OwnedFd,
    receiver: OwnedFd,
    to: libc::sockaddr_ll,
}

impl Wire {
    /// Moves the calling process, which must be single-threaded, into a network namespace of its own and
    /// makes the pair there. The kernel takes both away when the process has ended, however it did.
    pub fn in_own_namespace() -> Result<Self, Errno> {
        own_namespace(libc::CLONE_NEWNET)?;
        // Else the kernel itself sends packets when the ends come up. Without it there are a few.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        make_pair()?;
        let (sender, receiver) =
            (packet_socket(SocketFlags::empty())?, packet_socket(SocketFlags::NONBLOCK)?);
        let near = address(name_to_index(&sender, "sw0")?);
        let far = address(name_to_index(&sender, "sw1")?);
        bind(&sender, &near)?;
        bind(&receiver, &far)?;
        let mut to = near;
        to.sll_halen = 6;
        to.sll_addr = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0];
        Ok(Self { sender, receiver, to })
    }

    /// Sends a frame to the other end; when this returns it has arrived or is lost.
    pub fn send(&self) -> Result<(), Errno> {
        let frame = [0_u8; PAYLOAD_BYTES];
        let bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: frame and address are valid for as many bytes as are named.
        let sent = unsafe {
            libc::sendto(
                self.sender.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const self.to).cast(),
                bytes,
            )
        };
        if sent < 0 { Err(last_errno()) } else { Ok(()) }
    }

    /// Takes all frames that have arrived; gives how many.
    pub fn take_all(&self) -> u32 {
        let mut frames = 0;
        let mut frame = [0_u8; 2 * PAYLOAD_BYTES];
        while recv(&self.receiver, &mut frame, RecvFlags::empty()).is_ok() {
            frames += 1;
        }
        frames
    }
}

/// Receives nothing before it is bound to a protocol.
fn packet_socket(more: SocketFlags) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | more;
    socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)
}

fn address(index: u32) -> libc::sockaddr_ll {
    // SAFETY: zeroes are a valid address.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as c_ushort;
    address.sll_protocol = ETHERTYPE.to_be();
    address.sll_ifindex = index as c_int;
    address
}

fn bind(socket: &OwnedFd, address: &libc::sockaddr_ll) -> Result<(), Errno> {
    let bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is valid for as many bytes as are named.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const *address).cast(), bytes) })
        .map(|_| ())
}

/// Makes sw0 and its peer sw1, both up (rtnetlink(7)).
fn make_pair() -> Result<(), Errno> {
    let mut made = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    made.link(0, true);
    made.attribute(libc::IFLA_IFNAME, |name| name.put(b"sw0\0"));
    made.attribute(libc::IFLA_LINKINFO, |info| {
        info.attribute(IFLA_INFO_KIND, |kind| kind.put(b"veth\0"));
        info.attribute(IFLA_INFO_DATA, |data| {
            data.attribute(VETH_INFO_PEER, |peer| {
                // It cannot come up before the other is there (veth_open: ENOTCONN).
                peer.link(0, false);
                peer.attribute(libc::IFLA_IFNAME, |name| name.put(b"sw1\0"));
            });
        });
    });
    made.ask_kernel()?;
    let mut up = Message::new(libc::RTM_SETLINK, 0);
    let socket = packet_socket(SocketFlags::empty())?;
    up.link(name_to_index(socket, "sw1")? as c_int, true);
    up.ask_kernel()
}

/// Sends one message of rtnetlink, and reads the kernel's answer to it.
fn ask(message: &[u8]) -> Result<(), Errno> {
    // NETLINK_ROUTE is protocol 0.
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    // Unconnected, it goes to the kernel, which answers before the sending is over.
    send(&socket, message, SendFlags::empty())?;
    let mut answer = [0_u8; 1024];
    let (got, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    // nlmsgerr behind the header of 16 bytes: 0, or an errno below it.
    let error = answer.get(16..20).and_then(|error| error.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) if got >= 20 => Err(Errno::from_raw_os_error(-error)),
        _ => Err(Errno::PROTO),
    }
}

/// A netlink message: everything aligned to four bytes.
struct Message(Vec<u8>);

impl Message {
    /// With its nlmsghdr: length (filled in at the end), type and flags, sequence, port.
    fn new(kind: u16, flags: c_int) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = Self(Vec::new());
        message.put(&[0; 4]);
        message.put(&[kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
        message.put(&[0; 8]);
        message
    }

    fn ask_kernel(mut self) -> Result<(), Errno> {
        let bytes = self.0.len() as u32;
        self.0[..4].copy_from_slice(&bytes.to_ne_bytes());
        ask(&self.0)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// ifinfomsg of a link, by its index if it is there already.
    fn link(&mut self, index: c_int, is_up: bool) {
        let up = if is_up { libc::IFF_UP as u32 } else { 0 };
        self.put(&[0; 4]); // family, padding, type
        self.put(&index.to_ne_bytes());
        self.put(&up.to_ne_bytes()); // flags
        self.put(&up.to_ne_bytes()); // which of them change
    }

    /// rtattr: its length without the padding behind it, its type, what `fill` puts.
    fn attribute(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.put(&[0; 2]);
        self.0[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        fill(self);
        let bytes = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&bytes.to_ne_bytes());
    }
}

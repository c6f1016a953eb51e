//! A wire of the calling process's own: a pair of virtual Ethernet devices in a network namespace that
//! ends with it. A frame that is sent at one end is received at the other by the kernel's packet
//! handling, on the CPU that sends it (drivers/net/veth.c).

use std::ffi::{c_int, c_ushort};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::process::last_errno;
use super::sysv::own_namespace;

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
        let (sender, receiver) = (packet_socket(0)?, packet_socket(libc::SOCK_NONBLOCK)?);
        let near = address(index(c"sw0")?);
        let far = address(index(c"sw1")?);
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
        loop {
            // SAFETY: the kernel writes at most frame.len() bytes to a valid address.
            let got = unsafe {
                let to = frame.as_mut_ptr().cast();
                libc::recv(self.receiver.as_raw_fd(), to, frame.len(), 0)
            };
            if got < 0 {
                return frames;
            }
            frames += 1;
        }
    }
}

fn packet_socket(more: c_int) -> Result<OwnedFd, Errno> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | more;
    // Protocol 0 receives nothing before it is bound to one.
    // SAFETY: touches no memory.
    owned(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })
}

fn owned(descriptor: c_int) -> Result<OwnedFd, Errno> {
    match descriptor {
        ..0 => Err(last_errno()),
        // SAFETY: a descriptor just made, which nobody else knows.
        open => Ok(unsafe { OwnedFd::from_raw_fd(open) }),
    }
}

fn index(name: &std::ffi::CStr) -> Result<c_int, Errno> {
    // SAFETY: the name ends with a zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(last_errno()),
        index => c_int::try_from(index).map_err(|_| Errno::OVERFLOW),
    }
}

fn address(index: c_int) -> libc::sockaddr_ll {
    // SAFETY: zeroes are a valid address.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as c_ushort;
    address.sll_protocol = ETHERTYPE.to_be();
    address.sll_ifindex = index;
    address
}

fn bind(socket: &OwnedFd, address: &libc::sockaddr_ll) -> Result<(), Errno> {
    let bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is valid for as many bytes as are named.
    match unsafe { libc::bind(socket.as_raw_fd(), (&raw const *address).cast(), bytes) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
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
    up.link(index(c"sw1")?, true);
    up.ask_kernel()
}

/// Sends one message of rtnetlink, and reads the kernel's answer to it.
fn ask(message: &[u8]) -> Result<(), Errno> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: touches no memory.
    let socket = owned(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the message is valid for its length; unconnected, it goes to the kernel.
    let sent = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
    if sent < 0 {
        return Err(last_errno());
    }
    // The kernel answers before the sending is over: nothing is waited for.
    let mut answer = [0_u8; 1024];
    // SAFETY: the kernel writes at most answer.len() bytes to a valid address.
    let got = unsafe {
        libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT)
    };
    if got < 0 {
        return Err(last_errno());
    }
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

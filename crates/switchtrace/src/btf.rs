//! What the programs must know of the running kernel's types (Documentation/bpf/btf.rst): ids of
//! types, offsets of fields, the arguments of a tracepoint. Damaged data gives `None`, never a
//! panic.

const MAGIC: u16 = 0xeb9f;

/// `BTF_KIND_*` of include/uapi/linux/btf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Pointer = 2,
    Struct = 4,
    Union = 5,
    Typedef = 8,
    Volatile = 9,
    Const = 10,
    Restrict = 11,
    Function = 12,
    Prototype = 13,
    TypeTag = 18,
}

/// A kernel's types.
#[derive(Debug)]
pub(crate) struct Btf {
    data: Vec<u8>,
    /// Where each type lies in `data`. Type 0 is void.
    types: Vec<usize>,
    strings: usize,
}

/// The fixed part of a type.
struct Type {
    at: usize,
    name: u32,
    kind: u32,
    members: usize,
    has_bit_fields: bool,
    /// Of what it refers to; of a struct its bytes.
    target: u32,
}

const HEADER_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;
const PARAMETER_BYTES: usize = 8;

impl Btf {
    /// Of /sys/kernel/btf/vmlinux.
    pub(crate) fn parse(data: Vec<u8>) -> Option<Self> {
        let word = |at: usize| read_u32(&data, at).map(|word| word as usize);
        if data.get(..2)? != MAGIC.to_le_bytes() {
            return None;
        }
        let header = word(4)?;
        let (types_at, types_end) = (header + word(8)?, header + word(8)? + word(12)?);
        let strings = header + word(16)?;
        let mut btf = Self { data, types: vec![usize::MAX], strings };
        let mut at = types_at;
        while at < types_end {
            let found = btf.type_at(at)?;
            btf.types.push(at);
            at += HEADER_BYTES + bytes_behind(found.kind, found.members)?;
        }
        Some(btf)
    }

    fn type_at(&self, at: usize) -> Option<Type> {
        let (name, info) = (read_u32(&self.data, at)?, read_u32(&self.data, at + 4)?);
        let (kind, members) = (info >> 24 & 31, (info & 0xffff) as usize);
        let target = read_u32(&self.data, at + 8)?;
        Some(Type { at, name, kind, members, has_bit_fields: info >> 31 == 1, target })
    }

    fn get(&self, id: u32) -> Option<Type> {
        self.type_at(*self.types.get(id as usize)?)
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        let rest = self.data.get(self.strings + offset as usize..)?;
        rest.split(|byte| *byte == 0).next()
    }

    /// The id of a type by its name. Looks at all: an index of a hundred thousand names takes
    /// longer than the few searches.
    pub(crate) fn find(&self, kind: Kind, name: &str) -> Option<u32> {
        let is_it = |at: usize| {
            let found = self.type_at(at)?;
            let rest = self.data.get(self.strings + found.name as usize..)?;
            let ends = rest.strip_prefix(name.as_bytes())?.first() == Some(&0);
            (found.kind == kind as u32 && ends).then_some(())
        };
        let id = self.types.iter().position(|at| is_it(*at).is_some())?;
        u32::try_from(id).ok()
    }

    /// What lies behind typedefs and qualifiers.
    fn bare(&self, mut id: u32) -> Option<Type> {
        // Bounded, for damaged data can go in circles.
        for _ in 0..32 {
            let found = self.get(id)?;
            if !is_qualifier(found.kind) {
                return Some(found);
            }
            id = found.target;
        }
        None
    }

    /// Byte offset of a field of a struct; dots lead into fields that are structs.
    pub(crate) fn offset(&self, name: &str, path: &str) -> Option<i16> {
        let mut id = self.find(Kind::Struct, name)?;
        let mut bits = 0u32;
        for field in path.split('.') {
            let (offset, inner) = self.member(&self.bare(id)?, field.as_bytes(), 8)?;
            bits = bits.checked_add(offset)?;
            id = inner;
        }
        // Offsets of instructions have 15 bits.
        if bits % 8 == 0 { i16::try_from(bits / 8).ok() } else { None }
    }

    /// Bit offset and type of a member, also of one in an unnamed struct or union.
    fn member(&self, of: &Type, name: &[u8], deepest: u32) -> Option<(u32, u32)> {
        if of.kind != Kind::Struct as u32 && of.kind != Kind::Union as u32 || deepest == 0 {
            return None;
        }
        for number in 0..of.members {
            let at = of.at + HEADER_BYTES + number * MEMBER_BYTES;
            let own = read_u32(&self.data, at)?;
            let id = read_u32(&self.data, at + 4)?;
            let bits = read_u32(&self.data, at + 8)?;
            // With bit fields the upper byte is a width.
            let bits = if of.has_bit_fields { bits & 0xff_ffff } else { bits };
            if own != 0 {
                if self.string(own)? == name {
                    return Some((bits, id));
                }
            } else if let Some((inner, id)) =
                self.bare(id).and_then(|unnamed| self.member(&unnamed, name, deepest - 1))
            {
                return Some((bits.checked_add(inner)?, id));
            }
        }
        None
    }

    /// Of each argument that a program gets from this tracepoint, whether it is a pointer.
    pub(crate) fn tracepoint_arguments(&self, name: &str) -> Option<(u32, Vec<bool>)> {
        let id = self.find(Kind::Typedef, &format!("btf_trace_{name}"))?;
        let pointer = self.bare(id).filter(|found| found.kind == Kind::Pointer as u32)?;
        let prototype = self.bare(pointer.target)?;
        if prototype.kind != Kind::Prototype as u32 {
            return None;
        }
        // The first one is the tracepoint's own data, which programs do not get.
        let is_pointer = |number: usize| {
            let at = prototype.at + HEADER_BYTES + number * PARAMETER_BYTES + 4;
            let of = self.bare(read_u32(&self.data, at)?)?;
            Some(of.kind == Kind::Pointer as u32)
        };
        Some((id, (1..prototype.members).map(is_pointer).collect::<Option<_>>()?))
    }
}

fn read_u32(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn is_qualifier(kind: u32) -> bool {
    [Kind::Typedef, Kind::Volatile, Kind::Const, Kind::Restrict, Kind::TypeTag]
        .iter()
        .any(|wanted| *wanted as u32 == kind)
}

/// Bytes behind the fixed part, by kind; `None` for kinds that came later, which cannot be skipped.
fn bytes_behind(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        // Int, variable, declaration tag.
        1 | 14 | 17 => 4,
        // Array.
        3 => 12,
        // Struct, union, 64-bit enum: members. Data section: variables.
        4 | 5 | 15 | 19 => 12 * members,
        // Enum, prototype.
        6 | 13 => 8 * members,
        // Pointer, forward, typedef, qualifiers, function, float, type tag.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A kernel of four types: struct task_struct { int pid; struct { u64 a; } se; union { int
    /// flags; }; }.
    fn tiny() -> Vec<u8> {
        let mut strings = vec![0u8];
        let mut name = |text: &str| {
            let at = strings.len() as u32;
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            at
        };
        let words: Vec<u32> = [
            vec![name("int"), 1 << 24, 4, 32],
            vec![name("entity"), 4 << 24 | 1, 8, name("sum"), 1, 64],
            vec![0, 5 << 24 | 1, 4, name("flags"), 1, 0],
            vec![name("task"), 4 << 24 | 3, 32, name("pid"), 1, 0, name("se"), 2, 64, 0, 3, 192],
            vec![0, 2 << 24, 4],
            vec![0, 13 << 24 | 3, 0, 0, 5, 0, 1, 0, 5],
            vec![0, 2 << 24, 6],
            vec![name("btf_trace_demo"), 8 << 24, 7],
        ]
        .concat();
        let types: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let header =
            [0x1eb9f_u32, 24, 0, types.len() as u32, types.len() as u32, strings.len() as u32];
        let header: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
        [header, types, strings].concat()
    }

    #[test]
    fn fields_are_found() {
        let btf = Btf::parse(tiny()).unwrap();
        assert_eq!(btf.offset("task", "pid"), Some(0));
        assert_eq!(btf.offset("task", "se.sum"), Some(16));
        assert_eq!(btf.offset("task", "flags"), Some(24));
        assert_eq!(btf.offset("task", "se.none"), None);
        assert_eq!(btf.offset("none", "pid"), None);
        assert_eq!(btf.tracepoint_arguments("demo"), Some((8, vec![false, true])));
        assert_eq!(btf.tracepoint_arguments("other"), None);
    }

    proptest! {
        /// Whatever is broken or cut off, nothing panics.
        #[test]
        fn damaged_data_is_survived(at in 0usize..300, byte: u8, length in 0usize..400) {
            let mut data = tiny();
            if let Some(place) = data.get_mut(at) {
                *place = byte;
            }
            data.truncate(length);
            if let Some(btf) = Btf::parse(data) {
                let _ = btf.offset("task", "se.sum");
                let _ = btf.tracepoint_arguments("demo");
            }
        }
    }
}

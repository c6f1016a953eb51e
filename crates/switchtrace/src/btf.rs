//! A reader of BTF, the kernel's description of its own types (Documentation/bpf/btf.rst): ids of
//! types, offsets of fields, the arguments of a tracepoint. It is why programs can be written
//! without kernel headers. Damaged data gives `None`, never a panic.
//!
//! /sys/kernel/btf/vmlinux has a header, then the types one after the other, then their names:
//!
//! ```text
//! header | type 1 | type 2 | type 3 | ... | "\0int\0task_struct\0pid\0..."
//!                     |
//!                     name 5 ("task_struct"), kind struct, 240 members, 9,856 bytes
//!                     member: name 17 ("pid"), type 1, at bit 11,328
//! ```
//!
//! A type's id is its position in this order; type 0 is void. So `offset("task_struct", "pid")`
//! is 11,328 / 8 = 1,416 on that kernel, and another number on the next.

const MAGIC: u16 = 0xeb9f;

/// Kinds of types, `BTF_KIND_*` of include/uapi/linux/btf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum TypeKind {
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

/// The types of a kernel.
#[derive(Debug)]
pub(crate) struct Btf {
    data: Vec<u8>,
    /// The offset in `data` of each type, by its id.
    types: Vec<usize>,
    /// The offset in `data` of the names.
    names_at: usize,
}

/// The fixed part of a type.
struct TypeEntry {
    /// The offset in the data at which it begins.
    at: usize,
    /// The offset of its name among the names.
    name: u32,
    /// A [`TypeKind`], or a kind that is not needed here.
    kind: u32,
    members: usize,
    has_bit_fields: bool,
    /// The type that it refers to; the bytes of a struct.
    target: u32,
}

/// The position and type of a member of a struct.
struct MemberPlace {
    bits: u32,
    type_id: u32,
}

const HEADER_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;
const PARAMETER_BYTES: usize = 8;
/// Limits chains of typedefs and qualifiers: damaged data can go in circles.
const MAX_QUALIFIERS: usize = 32;
/// Limits how deep unnamed structs and unions may be nested.
const MAX_UNNAMED_DEPTH: u32 = 8;

impl Btf {
    /// Reads the content of /sys/kernel/btf/vmlinux.
    pub(crate) fn parse(data: Vec<u8>) -> Option<Self> {
        if data.get(..2)? != MAGIC.to_le_bytes() {
            return None;
        }
        let header_bytes = read_usize(&data, 4)?;
        let types_at = header_bytes + read_usize(&data, 8)?;
        let types_end = types_at + read_usize(&data, 12)?;
        let names_at = header_bytes + read_usize(&data, 16)?;
        let mut btf = Self { data, types: vec![usize::MAX], names_at };
        let mut at = types_at;
        while at < types_end {
            let entry = btf.type_at(at)?;
            btf.types.push(at);
            at += HEADER_BYTES + bytes_behind(entry.kind, entry.members)?;
        }
        Some(btf)
    }

    fn type_at(&self, at: usize) -> Option<TypeEntry> {
        let (name, info) = (read_u32(&self.data, at)?, read_u32(&self.data, at + 4)?);
        let (kind, members) = (info >> 24 & 31, (info & 0xffff) as usize);
        let target = read_u32(&self.data, at + 8)?;
        Some(TypeEntry { at, name, kind, members, has_bit_fields: info >> 31 == 1, target })
    }

    fn get(&self, id: u32) -> Option<TypeEntry> {
        self.type_at(*self.types.get(id as usize)?)
    }

    fn name(&self, offset: u32) -> Option<&[u8]> {
        let rest = self.data.get(self.names_at + offset as usize..)?;
        rest.split(|byte| *byte == 0).next()
    }

    /// Returns the id of a type by its name. It compares with all types: an index of a hundred
    /// thousand names would take longer to make than the few searches take.
    pub(crate) fn find(&self, kind: TypeKind, name: &str) -> Option<u32> {
        let id = self.types.iter().position(|at| self.is_type(*at, kind, name))?;
        u32::try_from(id).ok()
    }

    /// Returns whether the type that begins at `at` has this kind and name.
    fn is_type(&self, at: usize, kind: TypeKind, name: &str) -> bool {
        let Some(entry) = self.type_at(at) else { return false };
        let Some(rest) = self.data.get(self.names_at + entry.name as usize..) else { return false };
        let Some(behind) = rest.strip_prefix(name.as_bytes()) else { return false };
        entry.kind == kind as u32 && behind.first() == Some(&0)
    }

    /// Returns the type behind typedefs and qualifiers.
    fn bare(&self, mut id: u32) -> Option<TypeEntry> {
        for _ in 0..MAX_QUALIFIERS {
            let entry = self.get(id)?;
            if !is_qualifier(entry.kind) {
                return Some(entry);
            }
            id = entry.target;
        }
        None
    }

    /// Returns the byte offset of a field of a struct; dots lead into fields that are structs.
    pub(crate) fn offset(&self, struct_name: &str, path: &str) -> Option<i16> {
        let mut id = self.find(TypeKind::Struct, struct_name)?;
        let mut bits = 0u32;
        for field in path.split('.') {
            let member = self.member(&self.bare(id)?, field.as_bytes(), MAX_UNNAMED_DEPTH)?;
            bits = bits.checked_add(member.bits)?;
            id = member.type_id;
        }
        // Offsets of instructions have 15 bits.
        if bits % 8 == 0 { i16::try_from(bits / 8).ok() } else { None }
    }

    /// Finds a member of a struct or union by its name, also in unnamed ones within it.
    fn member(&self, parent: &TypeEntry, name: &[u8], max_depth: u32) -> Option<MemberPlace> {
        let has_members =
            parent.kind == TypeKind::Struct as u32 || parent.kind == TypeKind::Union as u32;
        if !has_members || max_depth == 0 {
            return None;
        }
        for number in 0..parent.members {
            let at = parent.at + HEADER_BYTES + number * MEMBER_BYTES;
            let member_name = read_u32(&self.data, at)?;
            let type_id = read_u32(&self.data, at + 4)?;
            let bits = read_u32(&self.data, at + 8)?;
            // With bit fields the upper byte is a width.
            let bits = if parent.has_bit_fields { bits & 0xff_ffff } else { bits };
            if member_name != 0 {
                if self.name(member_name)? == name {
                    return Some(MemberPlace { bits, type_id });
                }
                continue;
            }
            let Some(unnamed) = self.bare(type_id) else { continue };
            if let Some(inner) = self.member(&unnamed, name, max_depth - 1) {
                return Some(MemberPlace { bits: bits.checked_add(inner.bits)?, ..inner });
            }
        }
        None
    }

    /// Returns the id of a tracepoint's type, and for each argument that a program gets from it
    /// whether it is a pointer.
    pub(crate) fn tracepoint_arguments(&self, name: &str) -> Option<(u32, Vec<bool>)> {
        let id = self.find(TypeKind::Typedef, &format!("btf_trace_{name}"))?;
        let pointer = self.bare(id)?;
        if pointer.kind != TypeKind::Pointer as u32 {
            return None;
        }
        let prototype = self.bare(pointer.target)?;
        if prototype.kind != TypeKind::Prototype as u32 {
            return None;
        }
        let mut is_pointer = Vec::new();
        // The first argument is the tracepoint's own data, which programs do not get.
        for number in 1..prototype.members {
            let at = prototype.at + HEADER_BYTES + number * PARAMETER_BYTES + 4;
            let argument = self.bare(read_u32(&self.data, at)?)?;
            is_pointer.push(argument.kind == TypeKind::Pointer as u32);
        }
        Some((id, is_pointer))
    }
}

fn read_u32(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn read_usize(data: &[u8], at: usize) -> Option<usize> {
    Some(read_u32(data, at)? as usize)
}

fn is_qualifier(kind: u32) -> bool {
    [TypeKind::Typedef, TypeKind::Volatile, TypeKind::Const, TypeKind::Restrict, TypeKind::TypeTag]
        .iter()
        .any(|qualifier| *qualifier as u32 == kind)
}

/// Returns the bytes behind the fixed part of a type. `None` for kinds that came later: their size
/// is unknown, so they cannot be skipped.
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

    /// Returns the types of a kernel with a struct: struct task { int pid; struct entity { int
    /// sum; } se; union { int flags; }; }, and a tracepoint `demo`.
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

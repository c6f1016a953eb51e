//! Renames symbols of the library to the functions that a user has named.
//!
//! The dynamic loader finds a function by its name in the library's table of dynamic symbols. The
//! library has a symbol with a long placeholder name for each function that may be named. Before it
//! is preloaded, the names are overwritten in a copy of the file:
//!
//! ```text
//! names      \0switchcost_stub_00____...____\0        \0compress\0t_stub_00____...____\0
//! symbol 7   name at 1, data                   ->     name at 1, function at stub 0's code
//! hash       bucket of the old name: 7                bucket of "compress": 7
//! ```
//!
//! The hash table (System V gABI, "Hash Table") is then rebuilt; the library is linked with no other
//! kind. The file is 64-bit ELF in the byte order of this machine.

use crate::layout::{ALLOCATOR_SYMBOLS, MAX_NAME_BYTES, MAX_NAMED, STUB_BYTES, STUBS_MARK};

/// The error of a library that was not built by this program's build script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedLibrary(pub &'static str);

/// Offset in the ELF header of the program header table's offset (gABI, "ELF Header").
const PHOFF_AT: usize = 32;
/// Offset in the ELF header of the number of program headers.
const PHNUM_AT: usize = 56;
const PROGRAM_HEADER_BYTES: usize = 56;
/// Types of segments.
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
/// Tags of the dynamic section.
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DYNAMIC_ENTRY_BYTES: usize = 16;

const SYMBOL_BYTES: usize = 24;
/// Offsets in a symbol: its type, its address, its size.
const INFO_AT: usize = 4;
const VALUE_AT: usize = 8;
const SIZE_AT: usize = 16;
/// The type of a global function.
const GLOBAL_FUNCTION: u8 = 0x12;

/// Offsets in the file of its tables for dynamic linking.
struct SymbolTables {
    hash: usize,
    names: usize,
    symbols: usize,
}

/// Returns `N` bytes of the file.
fn bytes_at<const N: usize>(library: &[u8], at: usize) -> Result<[u8; N], DamagedLibrary> {
    let too_short = DamagedLibrary("it is too short");
    let end = at.checked_add(N).ok_or(too_short)?;
    let bytes = library.get(at..end).ok_or(too_short)?;
    bytes.try_into().map_err(|_| too_short)
}

fn u32_at(library: &[u8], at: usize) -> Result<u32, DamagedLibrary> {
    bytes_at(library, at).map(u32::from_ne_bytes)
}

fn u64_at(library: &[u8], at: usize) -> Result<u64, DamagedLibrary> {
    bytes_at(library, at).map(u64::from_ne_bytes)
}

fn set_u32(library: &mut [u8], at: usize, value: u32) -> Result<(), DamagedLibrary> {
    u32_at(library, at)?;
    library[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    Ok(())
}

/// A segment of the file: an entry of the program header table.
struct FileSegment {
    kind: u32,
    /// Where it begins in the file.
    offset: u64,
    /// Where it begins in memory.
    address: u64,
    bytes: u64,
}

impl FileSegment {
    fn read(library: &[u8], number: usize) -> Result<Self, DamagedLibrary> {
        let first = u64_at(library, PHOFF_AT)? as usize;
        let at = first.saturating_add(number * PROGRAM_HEADER_BYTES);
        Ok(Self {
            kind: u32_at(library, at)?,
            offset: u64_at(library, at.saturating_add(8))?,
            address: u64_at(library, at.saturating_add(16))?,
            bytes: u64_at(library, at.saturating_add(32))?,
        })
    }
}

fn segment_count(library: &[u8]) -> Result<usize, DamagedLibrary> {
    Ok(u16::from_ne_bytes(bytes_at(library, PHNUM_AT)?).into())
}

/// Returns the offset in the file of an address in memory.
fn file_offset(library: &[u8], address: u64) -> Result<usize, DamagedLibrary> {
    for number in 0..segment_count(library)? {
        let segment = FileSegment::read(library, number)?;
        let within = address.wrapping_sub(segment.address);
        if segment.kind == PT_LOAD && within < segment.bytes {
            return Ok(segment.offset.wrapping_add(within) as usize);
        }
    }
    Err(DamagedLibrary("a table lies outside of it"))
}

/// Returns the address in memory of the first stub's code.
fn stubs_address(library: &[u8]) -> Result<u64, DamagedLibrary> {
    let mark = library.windows(STUBS_MARK.len()).position(|bytes| bytes == STUBS_MARK);
    let end = mark.ok_or(DamagedLibrary("it has no places"))? + STUBS_MARK.len();
    for number in 0..segment_count(library)? {
        let segment = FileSegment::read(library, number)?;
        let within = (end as u64).wrapping_sub(segment.offset);
        if segment.kind == PT_LOAD && within < segment.bytes {
            return Ok((segment.address + within).next_multiple_of(STUB_BYTES as u64));
        }
    }
    Err(DamagedLibrary("its places lie outside of it"))
}

impl SymbolTables {
    fn find(library: &[u8]) -> Result<Self, DamagedLibrary> {
        if library.get(..5) != Some(b"\x7fELF\x02") {
            return Err(DamagedLibrary("it is no 64-bit ELF file"));
        }
        let (mut hash, mut names, mut symbols) = (None, None, None);
        for number in 0..segment_count(library)? {
            let segment = FileSegment::read(library, number)?;
            if segment.kind != PT_DYNAMIC {
                continue;
            }
            for entry in 0..segment.bytes as usize / DYNAMIC_ENTRY_BYTES {
                let at = (segment.offset as usize).saturating_add(entry * DYNAMIC_ENTRY_BYTES);
                let table = match u64_at(library, at)? {
                    DT_HASH => &mut hash,
                    DT_STRTAB => &mut names,
                    DT_SYMTAB => &mut symbols,
                    _ => continue,
                };
                *table = Some(file_offset(library, u64_at(library, at + 8)?)?);
            }
        }
        match (hash, names, symbols) {
            (Some(hash), Some(names), Some(symbols)) => Ok(Self { hash, names, symbols }),
            _ => Err(DamagedLibrary("it has no hash table of symbols")),
        }
    }

    /// Returns the offset in the file of a symbol's name.
    fn name_at(&self, library: &[u8], symbol: u32) -> Result<usize, DamagedLibrary> {
        let at = self.symbols.saturating_add(symbol as usize * SYMBOL_BYTES);
        Ok(self.names.saturating_add(u32_at(library, at)? as usize))
    }

    /// Finds a symbol by its name. Returns its number, and the offset in the file of the name.
    fn find_symbol(&self, library: &[u8], name: &[u8]) -> Result<(u32, usize), DamagedLibrary> {
        for symbol in 1..u32_at(library, self.hash + 4)? {
            let at = self.name_at(library, symbol)?;
            if text(library, at) == name {
                return Ok((symbol, at));
            }
        }
        Err(DamagedLibrary("it lacks a symbol"))
    }

    /// Makes a symbol a function at this address.
    fn set_function(
        &self,
        library: &mut [u8],
        symbol: u32,
        address: u64,
    ) -> Result<(), DamagedLibrary> {
        let at = self.symbols.saturating_add(symbol as usize * SYMBOL_BYTES);
        bytes_at::<SYMBOL_BYTES>(library, at)?;
        library[at + INFO_AT] = GLOBAL_FUNCTION;
        library[at + VALUE_AT..at + VALUE_AT + 8].copy_from_slice(&address.to_ne_bytes());
        library[at + SIZE_AT..at + SYMBOL_BYTES]
            .copy_from_slice(&(STUB_BYTES as u64).to_ne_bytes());
        Ok(())
    }

    /// Rebuilds the hash table, in its place: two numbers, the first symbol of each bucket, then for
    /// each symbol the next one of its bucket.
    fn rebuild_hash(&self, library: &mut [u8]) -> Result<(), DamagedLibrary> {
        let (buckets, symbols) = (u32_at(library, self.hash)?, u32_at(library, self.hash + 4)?);
        let buckets_at = self.hash + 8;
        let chains_at = buckets_at + 4 * buckets as usize;
        if buckets == 0 {
            return Err(DamagedLibrary("its hash table is empty"));
        }
        for bucket in 0..buckets as usize {
            set_u32(library, buckets_at + 4 * bucket, 0)?;
        }
        for symbol in 1..symbols {
            let name_at = self.name_at(library, symbol)?;
            let bucket = (hash(text(library, name_at)) % buckets) as usize;
            let first = u32_at(library, buckets_at + 4 * bucket)?;
            set_u32(library, chains_at + 4 * symbol as usize, first)?;
            set_u32(library, buckets_at + 4 * bucket, symbol)?;
        }
        Ok(())
    }
}

/// Returns the text that begins at an offset and ends before a zero.
fn text(library: &[u8], at: usize) -> &[u8] {
    let rest = library.get(at..).unwrap_or_default();
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Returns the gABI's hash of a name.
fn hash(name: &[u8]) -> u32 {
    let mut hash = 0_u32;
    for byte in name {
        hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        hash = (hash ^ (high >> 24)) & !high;
    }
    hash
}

/// Returns the placeholder name of a stub.
fn placeholder_name(number: usize) -> [u8; MAX_NAME_BYTES] {
    let prefix = b"switchcost_stub_";
    let mut name = [b'_'; MAX_NAME_BYTES];
    name[..prefix.len()].copy_from_slice(prefix);
    name[prefix.len()] = b'0' + (number / 10) as u8;
    name[prefix.len() + 1] = b'0' + (number % 10) as u8;
    name
}

/// Names the first stubs of the library by `functions`, at most [`MAX_NAMED`] names of at most
/// [`MAX_NAME_BYTES`] each. Without `allocator` hides malloc and the like.
pub fn rename(
    library: &mut [u8],
    functions: &[&str],
    allocator: bool,
) -> Result<(), DamagedLibrary> {
    let tables = SymbolTables::find(library)?;
    for (number, function) in functions.iter().enumerate().take(MAX_NAMED) {
        let (symbol, at) = tables.find_symbol(library, &placeholder_name(number))?;
        let code = stubs_address(library)? + (number * STUB_BYTES) as u64;
        tables.set_function(library, symbol, code)?;
        let bytes = &function.as_bytes()[..function.len().min(MAX_NAME_BYTES)];
        library[at..at + bytes.len()].copy_from_slice(bytes);
        library[at + bytes.len()] = 0;
    }
    // A program in Rust that links std dynamically has one of its own.
    let (_, personality) = tables.find_symbol(library, b"rust_eh_personality")?;
    library[personality] = b'.';
    if allocator {
        return tables.rebuild_hash(library);
    }
    // A dot makes it a name that no program asks for. Names may share their ends, not their
    // beginnings.
    for function in ALLOCATOR_SYMBOLS {
        // `valloc` may be the end of `pvalloc`, and hidden with it.
        if let Ok((_, at)) = tables.find_symbol(library, function.to_bytes()) {
            library[at] = b'.';
        }
    }
    tables.rebuild_hash(library)
}

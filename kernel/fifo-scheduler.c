/*
 * Loads the smallest scheduler of sched_ext, and unloads it at SIGTERM or SIGINT: fifo-scheduler NAME
 *
 * It has a name and no program: every operation of `struct sched_ext_ops` but the name is optional. The kernel
 * then puts tasks that wake into one queue, first come, first served, with slices of 20 ms. A woken task never
 * preempts.
 *
 *     /sys/kernel/btf/vmlinux    where the name is within the kernel's struct
 *     map of one value           the struct, with the name and zeroes
 *     link                       loads it; the kernel unloads it when the link is closed, so also after SIGKILL
 *
 * What is loaded is printed as a line. Needs root and CONFIG_SCHED_CLASS_EXT.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/uapi/linux/bpf.h and btf.h, of which Debian 12 has an older version. */
enum bpf_command { MAP_CREATE = 0, MAP_UPDATE = 2, BTF_LOAD = 18, LINK_CREATE = 28 };
enum { MAP_OF_STRUCT_OPS = 26, ATTACH_STRUCT_OPS = 44, MAP_HAS_LINK = 1 << 13 };
enum btf_kind { KIND_STRUCT = 4 };

#define BTF_FILE "/sys/kernel/btf/vmlinux"
#define VALUE_STRUCT "bpf_struct_ops_sched_ext_ops"

struct map_creation {
	uint32_t type, key_bytes, value_bytes, entries, flags;
	uint32_t inner_map, node;
	char name[16];
	uint32_t interface, btf, key_type, value_type, kernel_value_type;
};

struct map_update {
	uint32_t map, pad;
	uint64_t key, value, flags;
};

struct btf_load {
	uint64_t types, log;
	uint32_t bytes, log_bytes, log_level;
};

struct link_creation {
	uint32_t map, target, attach, flags;
};

struct btf_header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t header_bytes, types_at, types_bytes, names_at, names_bytes;
};

struct btf_type {
	uint32_t name, info, size;
};

struct btf_member {
	uint32_t name, type, bits;
};

/* The place of a member within a struct. */
struct place {
	uint32_t type, offset;
};

static char *btf;

static void fail(const char *call)
{
	fprintf(stderr, "fifo-scheduler: %s: %s\n", call, strerror(errno));
	exit(1);
}

static void refuse(const char *why)
{
	fprintf(stderr, "fifo-scheduler: %s\n", why);
	exit(1);
}

static int bpf(enum bpf_command command, void *attributes, size_t bytes)
{
	return syscall(SYS_bpf, command, attributes, bytes);
}

static void read_btf(void)
{
	struct stat state;
	size_t read_bytes = 0;
	int file = open(BTF_FILE, O_RDONLY | O_CLOEXEC);

	if (file < 0 || fstat(file, &state))
		fail(BTF_FILE);
	btf = malloc(state.st_size);
	if (!btf)
		fail("malloc");
	while (read_bytes < (size_t)state.st_size) {
		ssize_t bytes = read(file, btf + read_bytes, state.st_size - read_bytes);

		if (bytes <= 0)
			fail(BTF_FILE);
		read_bytes += bytes;
	}
	close(file);
}

static const char *name_at(uint32_t offset)
{
	const struct btf_header *header = (void *)btf;

	return btf + header->header_bytes + header->names_at + offset;
}

/* Bytes behind the fixed part of a type, by its kind. */
static size_t bytes_behind(const struct btf_type *type)
{
	uint32_t kind = type->info >> 24 & 31, members = type->info & 0xffff;

	switch (kind) {
	case 1: case 14: case 17: /* int, variable, declaration tag */
		return 4;
	case 3: /* array */
		return 12;
	case 4: case 5: case 15: case 19: /* struct, union, section, 64-bit enum */
		return 12 * members;
	case 6: case 13: /* enum, prototype */
		return 8 * members;
	default:
		return 0;
	}
}

/* Returns the type with this id, or the first struct of this name, and its id. */
static const struct btf_type *find_type(uint32_t *id, const char *struct_name)
{
	const struct btf_header *header = (void *)btf;
	const char *at = btf + header->header_bytes + header->types_at, *end = at + header->types_bytes;

	for (uint32_t number = 1; at < end; number++) {
		const struct btf_type *type = (void *)at;
		int is_struct = (type->info >> 24 & 31) == KIND_STRUCT;

		if (struct_name ? is_struct && !strcmp(name_at(type->name), struct_name) : number == *id) {
			*id = number;
			return type;
		}
		at += sizeof(*type) + bytes_behind(type);
	}
	refuse(BTF_FILE " has no struct " VALUE_STRUCT ": a kernel without CONFIG_SCHED_CLASS_EXT");
	return NULL;
}

static struct place find_member(const struct btf_type *type, const char *name)
{
	const struct btf_member *members = (void *)(type + 1);

	for (uint32_t number = 0; number < (type->info & 0xffff); number++) {
		/* With bit fields the upper byte is a width. */
		uint32_t bits = type->info >> 31 ? members[number].bits & 0xffffff : members[number].bits;

		if (!strcmp(name_at(members[number].name), name))
			return (struct place){ members[number].type, bits / 8 };
	}
	refuse("struct sched_ext_ops is not as this program knows it");
	return (struct place){ 0 };
}

/*
 * Gives the kernel types of this program, one int: it makes no map of a kernel's type for a program that has none
 * of its own, though it does not look at them.
 */
static int load_own_types(void)
{
	struct {
		struct btf_header header;
		struct btf_type type;
		uint32_t bits;
		char names[5];
	} own = {
		.header = { .magic = 0xeb9f, .version = 1, .header_bytes = sizeof(struct btf_header), .types_bytes = 16,
			    .names_at = 16, .names_bytes = 5 },
		.type = { .name = 1, .info = 1 << 24, .size = 4 },
		.bits = 32,
		.names = "\0int",
	};
	/* Without the padding at its end. */
	struct btf_load request = { .types = (uintptr_t)&own, .bytes = sizeof(own.header) + 16 + 5 };
	int types = bpf(BTF_LOAD, &request, sizeof(request));

	if (types < 0)
		fail("bpf(BPF_BTF_LOAD)");
	return types;
}

/* Loads the scheduler until the descriptor that is returned is closed. */
static int load(const char *name)
{
	uint32_t key = 0, value_type = 0;
	const struct btf_type *value_struct = find_type(&value_type, VALUE_STRUCT);
	struct place operations = find_member(value_struct, "data");
	const struct btf_type *operations_struct = find_type(&operations.type, NULL);
	struct place name_place = find_member(operations_struct, "name");
	char *value = calloc(1, value_struct->size);

	if (!value)
		fail("calloc");
	strcpy(value + operations.offset + name_place.offset, name);
	struct map_creation creation = {
		.type = MAP_OF_STRUCT_OPS, .key_bytes = sizeof(key), .value_bytes = value_struct->size,
		.entries = 1, .flags = MAP_HAS_LINK, .name = "fifo", .btf = load_own_types(),
		.kernel_value_type = value_type,
	};
	int map = bpf(MAP_CREATE, &creation, sizeof(creation));
	if (map < 0)
		fail("bpf(BPF_MAP_CREATE)");
	struct map_update update = { .map = map, .key = (uintptr_t)&key, .value = (uintptr_t)value };
	if (bpf(MAP_UPDATE, &update, sizeof(update)))
		fail("bpf(BPF_MAP_UPDATE_ELEM)");
	struct link_creation attachment = { .map = map, .attach = ATTACH_STRUCT_OPS };
	int link = bpf(LINK_CREATE, &attachment, sizeof(attachment));
	if (link < 0)
		fail("bpf(BPF_LINK_CREATE)");
	close(map);
	return link;
}

int main(int count, char **words)
{
	sigset_t signals;
	int signal_number;

	if (count != 2 || !*words[1] || strlen(words[1]) > 100)
		refuse("usage: fifo-scheduler NAME (at most 100 letters, digits, dots and underscores)");
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	read_btf();
	int link = load(words[1]);
	printf("loaded %s\n", words[1]);
	fflush(stdout);
	sigwait(&signals, &signal_number);
	/* The kernel unloads it before close(2) returns. */
	close(link);
	printf("unloaded %s\n", words[1]);
	return 0;
}

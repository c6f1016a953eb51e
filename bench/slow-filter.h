/* A filter of so many instructions that makes every system call slower (seccomp(2)).
 *
 * The filter allows every call. From two instructions on it reads an argument of the call, so that the
 * kernel cannot cache its answer by the call's number (kernel/seccomp.c, seccomp_is_const_allow). A filter
 * of one instruction is cached: it is the cheapest. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* The kernel's limit (BPF_MAXINSNS). */
#define MOST 4096

/* Filters the calls of this process and of all that it forks; -1 and errno where that is refused. */
static int filter(unsigned count)
{
	struct sock_filter code[MOST];
	struct sock_fprog program = { .len = (unsigned short)count, .filter = code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, args));
	for (unsigned i = 1; i < count; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, i);
	code[count - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* Without it only CAP_SYS_ADMIN may set a filter. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

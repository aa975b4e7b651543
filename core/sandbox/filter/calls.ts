/**
 * The system calls that a sandboxed process may make: an allow-list, with the reason for each. The
 * numbers are those of the kernel's headers for x86-64 and for arm64, which lacks the older forms.
 *
 * Native code can make any call with any argument, so an entry must be safe whatever calls it.
 * Arguments that select another process, a new socket or a new program are checked.
 */

/** A condition on the low 32 bits of one argument, or on all 64 bits of a pointer (`pointer`). */
export interface Condition {
  readonly arg: number;
  /** Bits to look at; default: all. */
  readonly mask?: number;
  /** The value to find, or the id of the process itself. */
  readonly is?: number | typeof SELF;
  readonly pointer?: bigint;
}

/** Alternatives. One is enough; all conditions of an alternative must hold. */
export type Allowed = readonly (readonly Condition[])[];

export interface SystemCall {
  readonly name: string;
  readonly x64?: number;
  readonly arm64?: number;
  readonly why: string;
  /** If absent, the call is allowed with all arguments. */
  readonly only?: Allowed;
}

/** Stands for the id of the process that is restricted. */
export const SELF = "self";

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NAMESPACES = 0x7e020000;
const CLONE_THREAD = 0x10000;
const threads: Allowed = [[{ arg: 0, mask: CLONE_THREAD | NAMESPACES, is: CLONE_THREAD }]];

/** Allows a call whose argument is the id of the own process, or 0, which means the same. */
const own = (arg: number): Allowed => [[{ arg, is: SELF }], [{ arg, is: 0 }]];

/** S_ISUID and S_ISGID. */
const SET_ID = 0o6000;

/**
 * Allows opening for reading without O_TRUNC, for writing, and for both. The access mode 3 opens
 * for neither, which Landlock would not look at. A new file must not run with the rights of its
 * owner, who may be root.
 */
const opening = (arg: number): Allowed =>
  [
    { arg, mask: 0x203, is: 0 },
    { arg, mask: 3, is: 1 },
    { arg, mask: 3, is: 2 },
  ].map((access) => [access, { arg: arg + 1, mask: SET_ID, is: 0 }]);

const anyOf = (arg: number, values: readonly number[]): Allowed => values.map((is) => [{ arg, is }]);

/** F_DUPFD to F_SETLKW, the locks of open files, F_DUPFD_CLOEXEC. */
const FCNTL = anyOf(1, [0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030]);
/** TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, FICLONE. */
const IOCTL = anyOf(1, [0x5401, 0x5413, 0x541b, 0x5421, 0x5450, 0x5451, 0x40049409]);
/** SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN of SOL_SOCKET. */
const GETSOCKOPT = [3, 4, 30, 38, 39].map((is) => [
  { arg: 1, is: 1 },
  { arg: 2, is },
]);

/** Calls of every sandboxed process. */
export const allowedCalls: readonly SystemCall[] = [
  // Memory
  { name: "mmap", x64: 9, arm64: 222, why: "V8 and the C library reserve memory." },
  { name: "munmap", x64: 11, arm64: 215, why: "V8 and the C library return memory." },
  { name: "mprotect", x64: 10, arm64: 226, why: "V8 makes the code that it compiles executable." },
  { name: "mremap", x64: 25, arm64: 216, why: "realloc grows large blocks." },
  { name: "madvise", x64: 28, arm64: 233, why: "V8 and the C library return unused pages." },
  { name: "brk", x64: 12, arm64: 214, why: "The C library grows its heap." },
  {
    name: "membarrier",
    x64: 324,
    arm64: 283,
    why: "V8 synchronizes the code of threads; musl does at the start of a thread.",
  },
  // Threads
  { name: "clone", x64: 56, arm64: 220, why: "Threads are started.", only: threads },
  { name: "futex", x64: 202, arm64: 98, why: "Threads wait for each other." },
  { name: "set_robust_list", x64: 273, arm64: 99, why: "The C library registers the locks of a thread." },
  { name: "rseq", x64: 334, arm64: 293, why: "The C library registers a thread." },
  { name: "set_tid_address", x64: 218, arm64: 96, why: "The C library starts a thread." },
  { name: "gettid", x64: 186, arm64: 178, why: "The C library names a thread." },
  { name: "exit", x64: 60, arm64: 93, why: "A thread ends." },
  { name: "exit_group", x64: 231, arm64: 94, why: "The process ends." },
  { name: "sched_yield", x64: 24, arm64: 124, why: "A thread that spins gives way." },
  { name: "sched_getaffinity", x64: 204, arm64: 123, why: "os.availableParallelism counts processors.", only: own(0) },
  {
    name: "sched_getscheduler",
    x64: 145,
    arm64: 120,
    why: "V8's locks read the class of a thread. The call changes nothing.",
  },
  {
    name: "sched_getparam",
    x64: 143,
    arm64: 121,
    why: "V8's locks read the priority of a thread. The call changes nothing.",
  },
  { name: "sched_get_priority_max", x64: 146, arm64: 125, why: "libuv prepares threads." },
  { name: "sched_get_priority_min", x64: 147, arm64: 126, why: "libuv prepares threads." },
  {
    name: "getpriority",
    x64: 140,
    arm64: 141,
    why: "os.getPriority of the own process.",
    only: [
      [
        { arg: 0, is: 0 },
        { arg: 1, is: SELF },
      ],
      [
        { arg: 0, is: 0 },
        { arg: 1, is: 0 },
      ],
    ],
  },
  { name: "getcpu", x64: 309, arm64: 168, why: "The C library chooses an arena." },
  {
    name: "arch_prctl",
    x64: 158,
    why: "The C library sets the thread pointer (ARCH_SET_FS) at the start.",
    only: [[{ arg: 0, is: 0x1002 }]],
  },
  {
    name: "prctl",
    x64: 157,
    arm64: 167,
    why: "Threads are named (PR_SET_NAME, PR_GET_NAME), memory is named (PR_SET_VMA).",
    only: [[{ arg: 0, is: 15 }], [{ arg: 0, is: 16 }], [{ arg: 0, is: 0x53564d41 }]],
  },
  // Time
  { name: "clock_gettime", x64: 228, arm64: 113, why: "Clocks, where the vDSO has none." },
  { name: "clock_getres", x64: 229, arm64: 114, why: "Clocks." },
  { name: "clock_nanosleep", x64: 230, arm64: 115, why: "Sleeping threads." },
  { name: "nanosleep", x64: 35, arm64: 101, why: "Sleeping threads." },
  { name: "gettimeofday", x64: 96, arm64: 169, why: "Clocks." },
  { name: "time", x64: 201, why: "Clocks." },
  { name: "times", x64: 100, arm64: 153, why: "process.cpuUsage of some C libraries." },
  { name: "getrusage", x64: 98, arm64: 165, why: "process.cpuUsage and process.resourceUsage." },
  { name: "restart_syscall", x64: 219, arm64: 128, why: "The kernel goes on with a call that a signal interrupted." },
  // Signals to itself
  { name: "rt_sigaction", x64: 13, arm64: 134, why: "Node sets its handlers." },
  { name: "rt_sigprocmask", x64: 14, arm64: 135, why: "Node blocks signals in its threads." },
  { name: "rt_sigreturn", x64: 15, arm64: 139, why: "A handler returns." },
  { name: "sigaltstack", x64: 131, arm64: 132, why: "V8 and libuv handle signals on a stack of their own." },
  { name: "rt_sigtimedwait", x64: 128, arm64: 137, why: "The C library waits for a signal." },
  { name: "kill", x64: 62, arm64: 129, why: "process.kill of the own process, and of its own group.", only: own(0) },
  {
    name: "tgkill",
    x64: 234,
    arm64: 131,
    why: "abort and the profiler signal a thread of the own process.",
    only: [[{ arg: 0, is: SELF }]],
  },
  // Files, which Landlock holds to the rules
  { name: "read", x64: 0, arm64: 63, why: "Reads a descriptor." },
  { name: "write", x64: 1, arm64: 64, why: "Writes a descriptor." },
  { name: "readv", x64: 19, arm64: 65, why: "Reads a descriptor." },
  { name: "writev", x64: 20, arm64: 66, why: "Writes a descriptor." },
  { name: "pread64", x64: 17, arm64: 67, why: "Reads a file at a position." },
  { name: "pwrite64", x64: 18, arm64: 68, why: "Writes a file at a position." },
  { name: "preadv", x64: 295, arm64: 69, why: "Reads a file at a position." },
  { name: "pwritev", x64: 296, arm64: 70, why: "Writes a file at a position." },
  { name: "preadv2", x64: 327, arm64: 286, why: "Reads a file at a position." },
  { name: "pwritev2", x64: 328, arm64: 287, why: "Writes a file at a position." },
  {
    name: "open",
    x64: 2,
    why: "Opens a file. It must not be emptied through a right to read: Landlock covers that since ABI 3 only.",
    only: opening(1),
  },
  { name: "openat", x64: 257, arm64: 56, why: "As open.", only: opening(2) },
  { name: "close", x64: 3, arm64: 57, why: "Closes a descriptor." },
  { name: "close_range", x64: 436, arm64: 436, why: "Closes descriptors." },
  { name: "lseek", x64: 8, arm64: 62, why: "Positions of a file." },
  { name: "stat", x64: 4, why: "Metadata of files, which Landlock does not cover." },
  { name: "fstat", x64: 5, arm64: 80, why: "Metadata of a descriptor." },
  { name: "lstat", x64: 6, why: "Metadata." },
  { name: "newfstatat", x64: 262, arm64: 79, why: "Metadata." },
  { name: "statx", x64: 332, arm64: 291, why: "Metadata." },
  { name: "access", x64: 21, why: "Whether a file can be used." },
  { name: "faccessat", x64: 269, arm64: 48, why: "Whether a file can be used." },
  { name: "faccessat2", x64: 439, arm64: 439, why: "Whether a file can be used." },
  { name: "readlink", x64: 89, why: "Where a link leads." },
  { name: "readlinkat", x64: 267, arm64: 78, why: "Where a link leads." },
  { name: "getcwd", x64: 79, arm64: 17, why: "The working folder." },
  { name: "chdir", x64: 80, arm64: 49, why: "process.chdir, which gives no right." },
  { name: "fchdir", x64: 81, arm64: 50, why: "As chdir." },
  { name: "getdents64", x64: 217, arm64: 61, why: "Lists a folder that could be opened." },
  { name: "mkdir", x64: 83, why: "Makes a folder." },
  { name: "mkdirat", x64: 258, arm64: 34, why: "Makes a folder." },
  { name: "rmdir", x64: 84, why: "Removes a folder." },
  { name: "unlink", x64: 87, why: "Removes a file." },
  { name: "unlinkat", x64: 263, arm64: 35, why: "Removes a file." },
  { name: "rename", x64: 82, why: "Renames a file." },
  { name: "renameat", x64: 264, arm64: 38, why: "Renames a file." },
  { name: "renameat2", x64: 316, arm64: 276, why: "Renames a file." },
  { name: "link", x64: 86, why: "Makes a second name. Landlock refuses it where the new name would have more rights." },
  { name: "linkat", x64: 265, arm64: 37, why: "As link." },
  { name: "ftruncate", x64: 77, arm64: 46, why: "Changes the size of a file that is open for writing." },
  { name: "fsync", x64: 74, arm64: 82, why: "Writes a file to the disk." },
  { name: "fdatasync", x64: 75, arm64: 83, why: "Writes a file to the disk." },
  { name: "fallocate", x64: 285, arm64: 47, why: "Reserves space for a file that is open for writing." },
  { name: "fadvise64", x64: 221, arm64: 223, why: "Hints of how a file is read." },
  { name: "copy_file_range", x64: 326, arm64: 285, why: "fs.copyFile between two open files." },
  { name: "sendfile", x64: 40, arm64: 71, why: "fs.copyFile between two open files." },
  { name: "dup", x64: 32, arm64: 23, why: "Copies a descriptor." },
  { name: "dup2", x64: 33, why: "Copies a descriptor." },
  { name: "dup3", x64: 292, arm64: 24, why: "Copies a descriptor." },
  {
    name: "fcntl",
    x64: 72,
    arm64: 25,
    why: "Flags, copies and locks of descriptors. Owners, signals, leases and watches of folders are refused.",
    only: FCNTL,
  },
  { name: "flock", x64: 73, arm64: 32, why: "Locks a file that is open." },
  {
    name: "ioctl",
    x64: 16,
    arm64: 29,
    why: "Blocking, close-on-exec, bytes that wait, whether it is a terminal and its size, copies of files on the same disk.",
    only: IOCTL,
  },
  { name: "umask", x64: 95, arm64: 166, why: "The mode of new files." },
  { name: "statfs", x64: 137, arm64: 43, why: "fs.statfs." },
  { name: "fstatfs", x64: 138, arm64: 44, why: "fs.statfs of some C libraries." },
  // Waiting
  { name: "epoll_create1", x64: 291, arm64: 20, why: "The event loop." },
  { name: "epoll_ctl", x64: 233, arm64: 21, why: "The event loop." },
  { name: "epoll_wait", x64: 232, why: "The event loop." },
  { name: "epoll_pwait", x64: 281, arm64: 22, why: "The event loop." },
  { name: "poll", x64: 7, why: "Waits for descriptors." },
  { name: "ppoll", x64: 271, arm64: 73, why: "Waits for descriptors." },
  { name: "select", x64: 23, why: "Waits for descriptors." },
  { name: "pselect6", x64: 270, arm64: 72, why: "Waits for descriptors." },
  { name: "eventfd2", x64: 290, arm64: 19, why: "Wakes the event loop." },
  { name: "pipe", x64: 22, why: "Wakes the event loop." },
  { name: "pipe2", x64: 293, arm64: 59, why: "Wakes the event loop." },
  // Sockets that were inherited
  { name: "accept", x64: 43, arm64: 202, why: "Takes a connection of the inherited listener." },
  { name: "accept4", x64: 288, arm64: 242, why: "Takes a connection of the inherited listener." },
  { name: "listen", x64: 50, arm64: 201, why: "net.Server.listen({ fd: 4 }) repeats it. No other socket can be made." },
  { name: "getsockname", x64: 51, arm64: 204, why: "Which socket it is." },
  { name: "getpeername", x64: 52, arm64: 205, why: "Which socket it is." },
  {
    name: "getsockopt",
    x64: 55,
    arm64: 209,
    why: "SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN. Handles of the other process (SO_PEERPIDFD) are refused.",
    only: GETSOCKOPT,
  },
  { name: "shutdown", x64: 48, arm64: 210, why: "Ends one side of a connection." },
  // Facts about the process
  { name: "getpid", x64: 39, arm64: 172, why: "The own process." },
  { name: "getppid", x64: 110, arm64: 173, why: "The parent's id, which gives no right." },
  { name: "getuid", x64: 102, arm64: 174, why: "The user." },
  { name: "geteuid", x64: 107, arm64: 175, why: "The user." },
  { name: "getgid", x64: 104, arm64: 176, why: "The group." },
  { name: "getegid", x64: 108, arm64: 177, why: "The group." },
  { name: "getpgrp", x64: 111, why: "The own process group." },
  { name: "getgroups", x64: 115, arm64: 158, why: "The groups." },
  { name: "getresuid", x64: 118, arm64: 148, why: "The user." },
  { name: "getresgid", x64: 120, arm64: 150, why: "The group." },
  { name: "capget", x64: 125, arm64: 90, why: "Node looks whether it has privileges." },
  { name: "prlimit64", x64: 302, arm64: 261, why: "The own limits, which can only be lowered.", only: own(0) },
  { name: "getrlimit", x64: 97, arm64: 163, why: "The own limits." },
  { name: "setrlimit", x64: 160, arm64: 164, why: "The own limits, which can only be lowered." },
  { name: "uname", x64: 63, arm64: 160, why: "os.release." },
  { name: "sysinfo", x64: 99, arm64: 179, why: "os.freemem and os.uptime." },
  { name: "getrandom", x64: 318, arm64: 278, why: "Random numbers." },
];

/**
 * Calls of a process that may start programs. They replace entries of the same name above. The
 * programs inherit all restrictions. They cannot leave the process group, so that the host ends
 * them with the module.
 */
export const callsToRunPrograms: readonly SystemCall[] = [
  { name: "fork", x64: 57, why: "Starts a child process." },
  { name: "vfork", x64: 58, why: "Starts a child process." },
  {
    name: "clone",
    x64: 56,
    arm64: 220,
    why: "Starts a thread or a child process in the same namespaces.",
    only: [[{ arg: 0, mask: NAMESPACES, is: 0 }]],
  },
  {
    name: "execve",
    x64: 59,
    arm64: 221,
    why: "Executes a program that was granted, which Landlock holds to the rules.",
  },
  { name: "wait4", x64: 61, arm64: 260, why: "Waits for a child process." },
  { name: "waitid", x64: 247, arm64: 95, why: "Waits for a child process." },
  { name: "socketpair", x64: 53, arm64: 199, why: "Pipes to a child process (AF_UNIX).", only: [[{ arg: 0, is: 1 }]] },
  { name: "getpgid", x64: 121, arm64: 155, why: "A shell orders its child processes." },
  { name: "rt_sigsuspend", x64: 130, arm64: 133, why: "A shell waits for its child processes." },
  { name: "rt_sigpending", x64: 127, arm64: 136, why: "A child process looks for signals." },
  { name: "alarm", x64: 37, why: "A program's own time limit." },
  { name: "setitimer", x64: 38, arm64: 103, why: "A program's own time limit." },
  { name: "getitimer", x64: 36, arm64: 102, why: "A program's own time limit." },
  { name: "pause", x64: 34, why: "A program waits for a signal." },
];

/**
 * Signals to any process. They are allowed only to a process that may start programs, and only
 * where the kernel holds signals to the sandbox by another layer.
 */
export const callsToSignalChildren: readonly SystemCall[] = [
  { name: "kill", x64: 62, arm64: 129, why: "child.kill()." },
];

/** Calls that succeed without doing anything. */
export const ignoredCalls: readonly SystemCall[] = [
  {
    name: "fchmod",
    x64: 91,
    arm64: 52,
    why: "fs.copyFile sets the mode of the copy, which already has it. The call would also change files that may only be read.",
  },
];

const ABSENT = "Libraries have another way when the kernel lacks it.";

/** Calls that do not exist in the sandbox (ENOSYS). All others that are not allowed are EPERM. */
export const absentCalls: readonly SystemCall[] = [
  { name: "clone3", x64: 435, arm64: 435, why: ABSENT },
  { name: "io_uring_setup", x64: 425, arm64: 425, why: ABSENT },
  { name: "io_uring_enter", x64: 426, arm64: 426, why: ABSENT },
  { name: "io_uring_register", x64: 427, arm64: 427, why: ABSENT },
  { name: "openat2", x64: 437, arm64: 437, why: ABSENT },
  { name: "pkey_alloc", x64: 330, arm64: 289, why: ABSENT },
  { name: "pkey_mprotect", x64: 329, arm64: 288, why: ABSENT },
  { name: "pkey_free", x64: 331, arm64: 290, why: ABSENT },
  { name: "memfd_create", x64: 319, arm64: 279, why: ABSENT },
  { name: "splice", x64: 275, arm64: 76, why: ABSENT },
  { name: "tee", x64: 276, arm64: 77, why: ABSENT },
  { name: "vmsplice", x64: 278, arm64: 75, why: ABSENT },
  { name: "epoll_pwait2", x64: 441, arm64: 441, why: ABSENT },
  { name: "futex_waitv", x64: 449, arm64: 449, why: ABSENT },
  { name: "fchmodat2", x64: 452, arm64: 452, why: ABSENT },
];

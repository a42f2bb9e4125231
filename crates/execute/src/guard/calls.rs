//! System calls that commands are denied because namespaces leave them open.
//!
//! Namespaces give a command its own view of the system, but not a smaller kernel. The filters deny calls that inspect other processes,
//! change mounts or namespaces, load code into the kernel, set clocks, or reach devices and sockets outside all namespaces, such as sockets
//! between virtual machines. A test sees the same errors as without the permission to make them.

use std::collections::BTreeMap;

use nix::libc;
use nix::unistd::{Pid, getpgid, getpgrp, getppid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use serde::{Deserialize, Serialize};

/// Processes that the filters protect from one command, and whether they deny uncounted memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FilterScope {
    /// Processes that the command may not signal; negative numbers are process groups, and -1 is all processes.
    processes: Vec<i32>,
    /// Threads of these processes.
    threads: Vec<i32>,
    /// Whether the kernel counts memory of every kind; otherwise the filters deny kinds that appear in no process.
    counted: bool,
    /// Whether files may reserve disk space before they are written; false if the disk is only watched.
    may_reserve: bool,
}

impl FilterScope {
    /// Protects this process with all its current threads. `alone` means that the command sees no other process.
    pub(super) fn this(alone: bool, counted: bool, may_reserve: bool) -> Self {
        let mut processes = vec![Pid::this().as_raw()];
        if !alone {
            processes.push(getppid().as_raw()); // the program
        }
        let threads = |pid: &i32| std::fs::read_dir(format!("/proc/{pid}/task"));
        let threads = processes.iter().flat_map(threads).flatten().flatten();
        let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        let threads = threads.collect();
        if !alone {
            let of_program = getpgid(Some(getppid())).unwrap_or(getpgrp());
            processes.extend([-getpgrp().as_raw(), -of_program.as_raw(), -1]);
        }
        Self { processes, threads, counted, may_reserve }
    }
}

/// Numbers of calls that `libc` does not know yet, the same on every processor.
const OPEN_TREE_ATTR: i64 = 467;
const SETXATTRAT: i64 = 463;

/// Calls that always fail with "operation not permitted".
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    OPEN_TREE_ATTR,
    // Memory placement: the kernel stores the policy for each part of a file in memory, and charges it to nobody.
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_set_mempolicy_home_node,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Memory that counts as a cache although it cannot be dropped.
    libc::SYS_memfd_secret,
    // The kernel itself, and its most vulnerable parts.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Calls that set attributes of files. A file in memory may have access lists of 64 KB each, which the kernel charges to nobody, and a
/// filter cannot read the attribute's name. To programs, file systems seem to have no attributes.
const ATTRIBUTES: [i64; 4] =
    [libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, SETXATTRAT];

/// Calls that change another process, given as first argument: its limits, priority and processors. The number 0 means the caller.
const OF_OTHERS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setaffinity,
];

/// Policies of the scheduler that let a process run before all others, and the bits of the argument that hold the policy.
const REAL_TIME: [u64; 3] =
    [libc::SCHED_FIFO as u64, libc::SCHED_RR as u64, libc::SCHED_DEADLINE as u64];
const POLICY: u64 = 0xff;

/// Calls that identify a process by its number.
const OF_PROCESS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// Calls that allocate memory which appears in no process.
const UNSEEN: &[i64] = &[
    libc::SYS_memfd_create,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// Calls that move pages of a file or of memory into pipes and sockets, where any part of a page, however small, keeps the whole page.
/// Pages of other files are never counted, and without a control group no pages are. Programs fall back to reading and writing.
const MOVES: [i64; 4] = [libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice, libc::SYS_sendfile];

/// Flags of calls, with the index of their argument, that request large pages, which no group counts. Programs go on without them, because
/// a system may have none.
const LARGE_PAGES: [(i64, u8, i32); 3] = [
    (libc::SYS_mmap, 3, libc::MAP_HUGETLB),
    (libc::SYS_memfd_create, 1, libc::MFD_HUGETLB.cast_signed()),
    (libc::SYS_shmget, 2, libc::SHM_HUGETLB),
];

/// Socket options that enlarge its buffers.
const BUFFERS: [i32; 4] =
    [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE];

/// Socket options that stay allowed, by level: options that hold no memory. Others hold uncounted memory: filters, keys of connections
/// (`TCP_MD5SIG`), groups and their sources, headers. To programs, the system seems to lack them.
const SETTINGS: [(i32, &[i32]); 5] = [
    (
        libc::SOL_SOCKET,
        &[
            libc::SO_DEBUG,
            libc::SO_REUSEADDR,
            libc::SO_DONTROUTE,
            libc::SO_BROADCAST,
            libc::SO_SNDBUF,
            libc::SO_RCVBUF,
            libc::SO_KEEPALIVE,
            libc::SO_OOBINLINE,
            libc::SO_NO_CHECK,
            libc::SO_PRIORITY,
            libc::SO_LINGER,
            libc::SO_BSDCOMPAT,
            libc::SO_REUSEPORT,
            libc::SO_PASSCRED,
            libc::SO_RCVLOWAT,
            libc::SO_SNDLOWAT,
            libc::SO_RCVTIMEO,
            libc::SO_SNDTIMEO,
            libc::SO_BINDTODEVICE,
            libc::SO_TIMESTAMP,
            libc::SO_SNDBUFFORCE,
            libc::SO_RCVBUFFORCE,
            libc::SO_PASSSEC,
            libc::SO_TIMESTAMPNS,
            libc::SO_MARK,
            libc::SO_TIMESTAMPING,
            libc::SO_RXQ_OVFL,
            libc::SO_PEEK_OFF,
            libc::SO_BUSY_POLL,
            libc::SO_MAX_PACING_RATE,
            libc::SO_INCOMING_CPU,
            63, // SO_TIMESTAMP, SO_TIMESTAMPNS and so on with 64 bits
            64,
            65,
            66,
            67,
        ],
    ),
    (
        libc::IPPROTO_IP,
        &[
            libc::IP_TOS,
            libc::IP_TTL,
            libc::IP_PKTINFO,
            libc::IP_MTU_DISCOVER,
            libc::IP_RECVERR,
            libc::IP_RECVTTL,
            libc::IP_RECVTOS,
            libc::IP_FREEBIND,
            libc::IP_TRANSPARENT,
            libc::IP_RECVORIGDSTADDR,
            libc::IP_BIND_ADDRESS_NO_PORT,
            libc::IP_MULTICAST_IF,
            libc::IP_MULTICAST_TTL,
            libc::IP_MULTICAST_LOOP,
            libc::IP_MULTICAST_ALL,
        ],
    ),
    (
        libc::IPPROTO_IPV6,
        &[
            libc::IPV6_UNICAST_HOPS,
            libc::IPV6_MULTICAST_IF,
            libc::IPV6_MULTICAST_HOPS,
            libc::IPV6_MULTICAST_LOOP,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_MTU,
            libc::IPV6_RECVERR,
            libc::IPV6_V6ONLY,
            libc::IPV6_RECVPKTINFO,
            libc::IPV6_RECVHOPLIMIT,
            libc::IPV6_RECVTCLASS,
            libc::IPV6_TCLASS,
            libc::IPV6_DONTFRAG,
            libc::IPV6_AUTOFLOWLABEL,
        ],
    ),
    (
        libc::IPPROTO_TCP,
        &[
            libc::TCP_NODELAY,
            libc::TCP_MAXSEG,
            libc::TCP_CORK,
            libc::TCP_KEEPIDLE,
            libc::TCP_KEEPINTVL,
            libc::TCP_KEEPCNT,
            libc::TCP_SYNCNT,
            libc::TCP_LINGER2,
            libc::TCP_DEFER_ACCEPT,
            libc::TCP_WINDOW_CLAMP,
            libc::TCP_QUICKACK,
            libc::TCP_CONGESTION,
            libc::TCP_THIN_LINEAR_TIMEOUTS,
            libc::TCP_THIN_DUPACK,
            libc::TCP_USER_TIMEOUT,
            libc::TCP_FASTOPEN,
            libc::TCP_TIMESTAMP,
            libc::TCP_NOTSENT_LOWAT,
            libc::TCP_FASTOPEN_CONNECT,
        ],
    ),
    (libc::IPPROTO_UDP, &[libc::UDP_CORK, libc::UDP_SEGMENT, libc::UDP_GRO]),
];

/// Requests to terminals and sockets for parts of the kernel that programs do not need but that the kernel might load: line disciplines,
/// virtual networks and bridges.
const PARTS: [libc::Ioctl; 7] = [libc::TIOCSETD, 0x8940, 0x8941, 0x8982, 0x8983, 0x89a0, 0x89a1];

/// Calls that set system call filters. The whole system has a fixed amount of memory for translated filters; once it is used up, no program
/// can set any. A filter with a listener outlives its process.
const FILTERING: [(i64, Option<u64>); 2] =
    [(libc::SYS_seccomp, None), (libc::SYS_prctl, Some(libc::PR_SET_SECCOMP as u64))];

/// Requests to `prctl` that are newer than any that programs need. One of them allocates memory that appears in no process, up to a
/// gigabyte per process, and does not yield the processor meanwhile: `PR_FUTEX_HASH` (78, Linux 6.16). Numbers above this range are older
/// requests again.
const NEWER_PRCTL: std::ops::Range<u64> = 77..1 << 16;

/// Request to `prctl` that gives memory a name, by which the guard would no longer recognise shared memory.
const PR_SET_VMA: u64 = 0x5356_4d41;

/// Advice on memory, and a request to `prctl`, by which the kernel merges equal pages: undoing it takes hours for large regions, in
/// which nobody can read the process's mappings.
const MERGING: [u64; 2] = [libc::MADV_MERGEABLE as u64, libc::MADV_UNMERGEABLE as u64];
const PR_SET_MEMORY_MERGE: u64 = 67;

/// Requests to files that reserve a part of the disk at once, as `fallocate` does.
const RESERVING: [u64; 3] = [0x4030_5828, 0x4030_582a, 0x4030_5839];

/// Requests that set flags of a file or folder, such as "no links can be made here", which remain when a copy is restored:
/// `FS_IOC_SETFLAGS`, also of 32 bits, and `FS_IOC_FSSETXATTR`.
const FLAGS: [u64; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];
/// Bits of the requests of type `f` that need no right to write but change what remains after the run: encryption keys and policies of a
/// file system (19 to 27), and checksums of files (from 133). Requests below 16 read flags and extents.
const ENCRYPTION: [(u64, u64); 2] = [(0xff10, 0x6610), (0xff80, 0x6680)];
/// Call that sets flags, too (`file_setattr`, Linux 6.17).
const FILE_SETATTR: i64 = 469;

/// Bits of a request to a file that hold its type, and the type of btrfs: some of its requests show other folders of the file system, or
/// make folders that cannot be removed. Programs that share blocks between files then copy the blocks.
const BTRFS: (u64, u64) = (0xff00, 0x9400);

/// Calls that can refer to all processes of a user, with the first argument that does.
const OF_USER: [(i64, u64); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Request that chooses the process which receives a file's signals; `libc` does not define it.
const F_SETOWN_EX: u64 = 15;
/// Requests for a lease on a file, or on a folder (new in Linux 6.19): any program that opens it then waits for the holder.
const LEASES: [u64; 2] = [libc::F_SETLEASE as u64, 1040];
/// Requests that tell how long data of a file will live, which need no right to write.
const HINTS: [u64; 2] = [1036, 1038];
/// Requests for locks that belong to an open file instead of a process. They are listed in every process namespace, so that a run with
/// many would end others by their limit; programs fall back to the older locks.
pub(super) const OPEN_FILE_LOCKS: [u64; 2] = [libc::F_OFD_SETLK as u64, libc::F_OFD_SETLKW as u64];
const FIOSETOWN: libc::Ioctl = 0x8901;
const SIOCSPGRP: libc::Ioctl = 0x8902;

/// Bit that marks calls of x32, another ABI of x86-64 kernels, and the range of calls that have separate numbers there.
const X32: (i64, std::ops::Range<i64>) = (1 << 30, 512..548);

/// Socket families that stay allowed; the kernel counts their memory in control groups, otherwise `processes` does:
/// - `AF_UNIX`, local sockets: pairs and servers of programs that talk to their own processes, such as `multiprocessing`;
/// - `AF_INET` and `AF_INET6`, internet sockets: servers on `localhost`, in a network that namespaces isolate.
///
/// The other families reach parts of the system that no namespace isolates, or hold memory that nothing counts, like the messages waiting
/// in sockets of `AF_NETLINK`. Programs that ask it for network settings receive none; `getaddrinfo` then assumes that all families are
/// available.
const FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Internet protocols that stay allowed: the usual one for streams or datagrams, by default or by number. The memory of others (MPTCP,
/// UDP-Lite, SCTP, DCCP, ICMP) is counted only in part or not at all.
const PROTOCOLS: [i32; 3] = [libc::IPPROTO_IP, libc::IPPROTO_TCP, libc::IPPROTO_UDP];

/// Bit patterns in a socket's type that neither streams (1) nor datagrams (2) match; raw sockets (3) have both bits.
const OTHER_KINDS: [u64; 3] = [3, 4, 8];

/// Filters for a command's system calls, in the order in which they are set.
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// Builds the filters for this machine and the protected processes.
    ///
    /// # Errors
    /// The filters do not support this processor.
    pub(super) fn new(guarded: &FilterScope) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("a filter of system calls: {error}");
        let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| failed(&e))?;
        let build = |rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32| {
            let refused = SeccompAction::Errno(errno as u32);
            let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture);
            filter.and_then(BpfProgram::try_from).map_err(|e| failed(&e))
        };
        let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
            REFUSED.iter().map(|&call| (call, Vec::new())).collect();
        if cfg!(target_arch = "x86_64") {
            refused.extend(of_x32().map(|call| (call, Vec::new())));
        }
        let rule = |conditions: &[Condition]| rule(conditions).map_err(|e| failed(&e));
        let mut clone: Vec<Condition> = NAMESPACES
            .iter()
            .map(|&flag| (0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64))
            .collect();
        // Fake input at the terminal of the program's user, and the receiver of a socket's signals.
        let ioctl = [libc::TIOCSTI, libc::TIOCLINUX, FIOSETOWN, SIOCSPGRP]
            .into_iter()
            .chain(PARTS)
            .map(|call| (1, SeccompCmpOp::Eq, u64::from(call as u32)));
        let one = |condition| rule(&[condition]);
        clone.extend([OTHERS_FILES, OWN_FILES]);
        let unshare = u64::from(libc::CLOSE_RANGE_UNSHARE);
        let own_files = one((2, SeccompCmpOp::MaskedEq(unshare), unshare))?;
        refused.insert(libc::SYS_close_range, vec![own_files]);
        refused.insert(libc::SYS_clone, clone.into_iter().map(one).collect::<Result<_, _>>()?);
        refused.insert(libc::SYS_ioctl, ioctl.map(one).collect::<Result<_, _>>()?);
        let another = |argument| one((argument, SeccompCmpOp::Ne, 0));
        for &call in OF_OTHERS {
            refused.insert(call, vec![another(0)?]);
        }
        // A process with a real-time priority would run instead of its guard. The newer call passes the priority in memory, hidden from
        // filters.
        let real_time = REAL_TIME.map(|policy| one((1, SeccompCmpOp::MaskedEq(POLICY), policy)));
        let real_time = real_time.into_iter().collect::<Result<Vec<_>, _>>()?;
        refused.entry(libc::SYS_sched_setscheduler).or_default().extend(real_time);
        refused.insert(libc::SYS_sched_setattr, Vec::new());
        for (call, of_user) in OF_USER {
            refused.insert(call, vec![another(1)?, one((0, SeccompCmpOp::Eq, of_user))?]);
        }
        let is_any = |numbers: &[i32]| -> Result<Vec<SeccompRule>, String> {
            let numbers = numbers.iter().map(|&number| u64::from(number.cast_unsigned()));
            numbers.map(|number| one((0, SeccompCmpOp::Eq, number))).collect()
        };
        // The number of a thread stands for its process.
        let guarded_numbers = [&guarded.processes[..], &guarded.threads].concat();
        for &call in OF_PROCESS {
            refused.insert(call, is_any(&guarded_numbers)?);
        }
        // Signals about files may go to any process. The newer call passes the process in memory, hidden from filters.
        let mut requests = vec![one((1, SeccompCmpOp::Eq, F_SETOWN_EX))?];
        for &number in &guarded_numbers {
            let owner = u64::from(number.cast_unsigned());
            let set = (1, SeccompCmpOp::Eq, libc::F_SETOWN as u64);
            requests.push(rule(&[set, (2, SeccompCmpOp::Eq, owner)])?);
        }
        for request in LEASES.into_iter().chain(HINTS) {
            requests.push(one((1, SeccompCmpOp::Eq, request))?);
        }
        refused.insert(libc::SYS_fcntl, requests);
        refused.insert(libc::SYS_tkill, is_any(&guarded.threads)?);
        let (families, protocols) = socket_rules().map_err(|e| failed(&e))?;
        // Its flags are in memory, which filters cannot read; libraries fall back to the older call.
        let mut newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        // A folder of `/proc` can also identify a process; programs fall back to signalling by number.
        newer.insert(libc::SYS_pidfd_send_signal, Vec::new());
        // The number of these requests is limited for the whole system.
        newer.insert(libc::SYS_io_setup, Vec::new());
        // Segment tables stay in memory while a file of `/proc` that describes the ended process is open.
        #[cfg(target_arch = "x86_64")]
        newer.insert(libc::SYS_modify_ldt, Vec::new());
        let mut large_pages = BTreeMap::new();
        for (call, argument, flag) in LARGE_PAGES {
            let flag = u64::from(flag.cast_unsigned());
            large_pages.insert(call, vec![one((argument, SeccompCmpOp::MaskedEq(flag), flag))?]);
        }
        // Only the limit of core dumps that the run sets also holds for a program that receives dumps through a pipe; a lower limit would
        // not. Calls that set another limit succeed without effect.
        let core = u64::from(libc::RLIMIT_CORE);
        let limit = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, core);
        let new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
        let both = limit.and_then(|limit| SeccompRule::new(vec![limit, new?]));
        let mut ignored = BTreeMap::from([
            (libc::SYS_setrlimit, vec![one((0, SeccompCmpOp::Eq, core))?]),
            (libc::SYS_prlimit64, vec![both.map_err(|e| failed(&e))?]),
        ]);
        // A closed socket that lingers keeps its memory, and that of all sockets and files sent with it, after the run.
        let option = |option: i32| {
            rule(&[
                (1, SeccompCmpOp::Eq, libc::SOL_SOCKET as u64),
                (2, SeccompCmpOp::Eq, option as u64),
            ])
        };
        let mut without_effect = vec![option(libc::SO_LINGER).map_err(|e| failed(&e))?];
        if !guarded.counted {
            newer.extend(UNSEEN.iter().map(|&call| (call, Vec::new())));
            // Like the system, which also accepts larger sizes than it grants.
            for larger in BUFFERS {
                without_effect.push(option(larger).map_err(|e| failed(&e))?);
            }
        }
        ignored.insert(libc::SYS_setsockopt, without_effect);
        let sockets = |rules: Vec<SeccompRule>| {
            BTreeMap::from([(libc::SYS_socket, rules.clone()), (libc::SYS_socketpair, rules)])
        };
        let settings =
            BTreeMap::from([(libc::SYS_setsockopt, settings().map_err(|e| failed(&e))?)]);
        let [mut unsupported, mut moves] =
            [ATTRIBUTES, MOVES].map(|calls| BTreeMap::from(calls.map(|call| (call, Vec::new()))));
        let locks = OPEN_FILE_LOCKS.map(|request| one((1, SeccompCmpOp::Eq, request)));
        moves.insert(libc::SYS_fcntl, locks.into_iter().collect::<Result<_, _>>()?);
        let (mask, btrfs) = BTRFS;
        let mut requests = vec![one((1, SeccompCmpOp::MaskedEq(mask), btrfs))?];
        for (mask, request) in ENCRYPTION {
            requests.push(one((1, SeccompCmpOp::MaskedEq(mask), request))?);
        }
        unsupported.insert(FILE_SETATTR, Vec::new());
        for request in FLAGS {
            requests.push(one((1, SeccompCmpOp::Eq, request))?);
        }
        if !guarded.may_reserve {
            for request in RESERVING {
                requests.push(one((1, SeccompCmpOp::Eq, request))?);
            }
            // It reserves any amount of disk at once; programs fall back to writing.
            unsupported.insert(libc::SYS_fallocate, Vec::new());
        }
        unsupported.insert(libc::SYS_ioctl, requests);
        let mut filters = vec![
            build(refused, libc::EPERM)?,
            build(settings, libc::ENOPROTOOPT)?,
            build(unsupported, libc::EOPNOTSUPP)?,
            build(moves, libc::EINVAL)?,
            build(large_pages, libc::ENOMEM)?,
            build(newer, libc::ENOSYS)?,
            build(sockets(families), libc::EAFNOSUPPORT)?,
            // Libraries that try MPTCP first (Go) fall back to TCP.
            build(sockets(protocols), libc::EPROTONOSUPPORT)?,
            build(ignored, 0)?,
        ];
        // This filter must be the last one, because it denies setting any others.
        let mut filtering = BTreeMap::new();
        for (call, request) in FILTERING {
            let request = request.map(|request| one((0, SeccompCmpOp::Eq, request)));
            filtering.insert(call, request.into_iter().collect::<Result<Vec<_>, _>>()?);
        }
        let newer =
            [(0, SeccompCmpOp::Ge, NEWER_PRCTL.start), (0, SeccompCmpOp::Lt, NEWER_PRCTL.end)];
        let merged = one((0, SeccompCmpOp::Eq, PR_SET_MEMORY_MERGE))?;
        let named = one((0, SeccompCmpOp::Eq, PR_SET_VMA))?;
        filtering.entry(libc::SYS_prctl).or_default().extend([rule(&newer)?, named, merged]);
        let advice = MERGING.map(|advice| one((2, SeccompCmpOp::Eq, advice)));
        let advice = advice.into_iter().collect::<Result<Vec<_>, _>>()?;
        filtering.insert(libc::SYS_madvise, advice);
        filters.push(build(filtering, libc::EINVAL)?);
        Ok(Self(filters))
    }

    /// Sets the filters for this thread and everything that it starts.
    ///
    /// # Errors
    /// The system does not support such filters.
    pub(super) fn set(&self) -> std::io::Result<()> {
        let failed = |error| std::io::Error::other(format!("a filter of system calls: {error}"));
        self.0.iter().try_for_each(|filter| seccompiler::apply_filter(filter).map_err(failed))
    }
}

/// Flags of `clone` that create namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Index of an argument, and how its lower half compares with a value.
type Condition = (u8, SeccompCmpOp, u64);

/// Flags of `clone` that create a thread with its own open files, which its process does not list.
const OWN_FILES: Condition = (
    0,
    SeccompCmpOp::MaskedEq((libc::CLONE_THREAD | libc::CLONE_FILES) as u64),
    libc::CLONE_THREAD as u64,
);

/// Flags of `clone` that create a process sharing the open files of another: its locks outlive it, and no list shows them.
const OTHERS_FILES: Condition = (
    0,
    SeccompCmpOp::MaskedEq((libc::CLONE_THREAD | libc::CLONE_FILES) as u64),
    libc::CLONE_FILES as u64,
);

/// Returns the denied calls of x32: all that the other filters treat by name.
fn of_x32() -> impl Iterator<Item = i64> {
    let (bit, own) = X32;
    let by_argument = [
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_ioctl,
        libc::SYS_tkill,
        libc::SYS_setsockopt,
        libc::SYS_pidfd_send_signal,
        libc::SYS_fcntl,
        libc::SYS_close_range,
        libc::SYS_io_setup,
        libc::SYS_setrlimit,
        libc::SYS_sched_setattr,
        libc::SYS_mmap,
        libc::SYS_fallocate,
        FILE_SETATTR,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_modify_ldt,
    ];
    let by_number = [OF_OTHERS, OF_PROCESS, UNSEEN, &ATTRIBUTES, &MOVES].concat();
    let numbers = REFUSED.iter().copied().chain(own).chain(by_argument).chain(by_number);
    let numbers = numbers.chain(FILTERING.map(|(call, _)| call));
    numbers.chain(OF_USER.map(|(call, _)| call)).map(move |call| call | bit)
}

/// Returns the rules that deny families of sockets, and types and protocols of internet sockets.
fn socket_rules() -> Result<(Vec<SeccompRule>, Vec<SeccompRule>), seccompiler::BackendError> {
    let others = FAMILIES.map(|family| (0, SeccompCmpOp::Ne, family as u64));
    let mut of_internet = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = (0, SeccompCmpOp::Eq, family as u64);
        for kind in OTHER_KINDS {
            of_internet.push(rule(&[family.clone(), (1, SeccompCmpOp::MaskedEq(kind), kind)])?);
        }
        let protocols = PROTOCOLS.map(|protocol| (2, SeccompCmpOp::Ne, protocol as u64));
        of_internet.push(rule(&[&[family], &protocols[..]].concat())?);
    }
    Ok((vec![rule(&others)?], of_internet))
}

/// Returns the rules that deny socket options: all of other levels, and all except the allowed ones of these levels.
fn settings() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let is = |argument: u8, compare: SeccompCmpOp, number: i32| {
        (argument, compare, u64::from(number.cast_unsigned()))
    };
    let others = SETTINGS.map(|(level, _)| is(1, SeccompCmpOp::Ne, level));
    let mut rules = vec![rule(&others)?];
    for (level, left) in SETTINGS {
        let mut conditions = vec![is(1, SeccompCmpOp::Eq, level)];
        conditions.extend(left.iter().map(|&setting| is(2, SeccompCmpOp::Ne, setting)));
        rules.push(rule(&conditions)?);
    }
    Ok(rules)
}

/// Returns a rule that applies if all conditions hold.
fn rule(conditions: &[Condition]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, compare, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, compare.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

//! Which instructions the machine has, and the calls that need them: one of the two modules of the crate with unsafe code.
//!
//! Why it is sound: the kernels are safe functions, checked as any other, but for one promise that the compiler cannot
//! check for itself: that the processor has the instructions they were compiled for. [`Level`]'s field is private and
//! values of it come from [`Level::best`] and [`Level::available`] alone, which ask the processor; a call below goes
//! to the kernels of its level's instructions, no others. [`prefetch`] changes nothing but the processor's caches. `.ci/sanitize` runs the tests of every level that the machine has
//! under AddressSanitizer.
#![allow(unsafe_code)]

use super::kernels::{Candidate, Line, Sweep, portable};
#[cfg(target_arch = "x86_64")]
use super::kernels::{avx2, avx512};

/// A set of instructions that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Instructions);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Instructions::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => "AVX-512",
        })
    }
}

/// Asks for a value to be brought into the cache, while the program goes on.
#[inline]
pub(super) fn prefetch<T>(value: &T) {
    // SAFETY: the instruction reads nothing that the program sees, and every processor of this architecture has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

impl Level {
    /// All that this machine has, the fastest last. The processor is asked once a process.
    pub fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let more = {
            let avx2 = is_x86_feature_detected!("avx2");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            [avx2.then_some(Self(Instructions::Avx2)), avx512.then_some(Self(Instructions::Avx512))]
        };
        #[cfg(not(target_arch = "x86_64"))]
        let more: [Option<Self>; 0] = [];
        std::iter::once(Self(Instructions::Portable)).chain(more.into_iter().flatten())
    }

    /// The fastest that this machine has.
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self(Instructions::Portable))
    }

    /// Counts a query's rows in some chunks; returns how many candidates are kept. See the kernel in [`super::kernels`].
    #[inline]
    pub(super) fn sweep<const P: usize>(
        self,
        sweep: &Sweep<'_>,
        candidates: &mut [Candidate],
        planes: &mut [[Line; P]],
    ) -> usize {
        match self.0 {
            Instructions::Portable => portable::sweep(sweep, candidates, planes),
            // SAFETY: there is a level with these instructions only where the processor said that it has AVX2.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { avx2::sweep(sweep, candidates, planes) },
            // SAFETY: as above, of AVX-512 F, BW and VL.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { avx512::sweep(sweep, candidates, planes) },
        }
    }
}

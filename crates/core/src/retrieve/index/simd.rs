//! Detects the machine's instructions and makes the calls that need them. Only this module of the crate has unsafe code.
//!
//! Why it is sound: the kernels are safe functions, checked like any other, except for one condition that the compiler cannot
//! check: the processor must have the instructions for which they were compiled. The field of [`Level`] is private, and values
//! come only from [`Level::best`] and [`Level::available`], which ask the processor. A call below uses only the kernel of its
//! level's instructions. [`prefetch`] changes only the processor's caches. `.ci/sanitize` runs the tests of every level that
//! the machine has under AddressSanitizer.
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

/// Requests that a value be brought into the cache while the program continues.
#[inline]
pub(super) fn prefetch<T>(value: &T) {
    // SAFETY: the instruction has no effect that the program can observe, and every processor of this architecture has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

impl Level {
    /// Returns all levels that this machine has, the fastest last. The processor is asked once per process.
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

    /// Returns the fastest level that this machine has.
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self(Instructions::Portable))
    }

    /// Counts a query's rows in some chunks; returns the number of candidates kept. See the kernel in [`super::kernels`].
    #[inline]
    pub(super) fn sweep<const P: usize>(
        self,
        sweep: &Sweep<'_>,
        candidates: &mut [Candidate],
        planes: &mut [[Line; P]],
    ) -> usize {
        match self.0 {
            Instructions::Portable => portable::sweep(sweep, candidates, planes),
            // SAFETY: this level exists only if the processor reported that it has AVX2.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { avx2::sweep(sweep, candidates, planes) },
            // SAFETY: as above, for AVX-512 F, BW and VL.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { avx512::sweep(sweep, candidates, planes) },
        }
    }
}

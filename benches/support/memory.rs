//! Speed at which this machine reads memory: an upper bound on the speed of searching.

use std::hint::black_box;

use cpu_time::ProcessTime;

/// Cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Number of bytes read in order in one measurement, enough to time even the nearest cache.
const READ: usize = 1 << 31;

/// Speed of reading a collection of cache lines.
pub struct Reading {
    /// Bytes per second, reading all lines in order repeatedly.
    pub in_order: f64,
    /// Bytes per second, reading scattered lines, none of which depends on another.
    pub scattered: f64,
    /// Seconds per line, if each line determines the next one.
    pub one_by_one: f64,
}

/// Measures reading `bytes`, a power of two.
pub fn read(bytes: usize) -> Reading {
    let mut lines = vec![Line::default(); bytes / size_of::<Line>()];
    link(&mut lines);
    let (lines, mask) = (&lines[..], lines.len() - 1);
    let rounds = READ / bytes;
    let in_order = seconds_a_line(rounds * lines.len(), || {
        (0..rounds).for_each(|_| sum(black_box(lines).iter()))
    });
    let steps = READ / 8 / size_of::<Line>();
    let scattered = seconds_a_line(steps, || {
        let at = |i: usize| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        sum((0..steps).map(|i| &lines[at(i) & mask]));
    });
    let one_by_one = seconds_a_line(steps, || {
        black_box((0..steps).fold(0, |at, _| lines[at].0[0] as usize));
    });
    Reading {
        in_order: size_of::<Line>() as f64 / in_order,
        scattered: size_of::<Line>() as f64 / scattered,
        one_by_one,
    }
}

fn seconds_a_line(lines: usize, read: impl Fn()) -> f64 {
    let begin = ProcessTime::now();
    read();
    begin.elapsed().as_secs_f64() / lines as f64
}

fn sum<'a>(lines: impl Iterator<Item = &'a Line>) {
    let mut sum = Line::default();
    for line in lines {
        for (sum, word) in sum.0.iter_mut().zip(line.0) {
            *sum ^= word;
        }
    }
    black_box(sum);
}

/// Links all lines in one cycle, each naming the next (Sattolo's shuffle).
fn link(lines: &mut [Line]) {
    let mut next: Vec<usize> = (0..lines.len()).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for i in (1..next.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        next.swap(i, (state % i as u64) as usize);
    }
    for (line, next) in lines.iter_mut().zip(next) {
        line.0[0] = next as u64;
    }
}

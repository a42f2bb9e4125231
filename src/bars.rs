//! Progress bars on a terminal, one for each long-running piece of work.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use indicatif::{
    HumanBytes, HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState,
    ProgressStyle,
};
use repoformer_store::progress::{Progress, running};
use repoformer_text::visible::visible_in_line;

/// Duration of work before it gets a bar.
const AFTER: Duration = Duration::from_millis(700);
/// Time between two updates of the bars.
const EVERY: Duration = Duration::from_millis(100);

static BARS: OnceLock<Bars> = OnceLock::new();
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Bars on the screen.
struct Bars {
    screen: MultiProgress,
    shown: Mutex<Vec<(Arc<Progress>, ProgressBar)>>,
}

/// Draws bars from now on, if stderr is a terminal.
pub(crate) fn begin() {
    if !io::stderr().is_terminal() {
        return;
    }
    let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    BARS.get_or_init(|| Bars { screen, shown: Mutex::default() });
    thread::spawn(|| {
        loop {
            thread::sleep(EVERY);
            update();
        }
    });
}

/// Prints something while no bar is drawn; bars of unfinished work are drawn again below it.
pub(crate) fn aside<T>(print: impl FnOnce() -> T) -> T {
    let Some(bars) = BARS.get() else {
        return print();
    };
    update();
    bars.screen.suspend(print)
}

/// Removes all bars and draws no more: the program ends, or its records go to the same screen.
pub(crate) fn end() {
    HAS_ENDED.store(true, Relaxed);
    update();
}

/// Removes the bars of finished work, updates the others, and adds bars for work that has lasted long enough.
fn update() {
    let Some(bars) = BARS.get() else { return };
    let mut shown = bars.shown.lock().unwrap_or_else(PoisonError::into_inner);
    let mut running = if HAS_ENDED.load(Relaxed) { Vec::new() } else { running() };
    running.retain(|progress| progress.begun.elapsed() >= AFTER);
    shown.retain(|(progress, bar)| {
        let goes_on = running.iter().any(|other| Arc::ptr_eq(other, progress));
        if !goes_on {
            bar.finish_and_clear();
        }
        goes_on
    });
    for progress in running {
        if !shown.iter().any(|(known, _)| Arc::ptr_eq(known, &progress)) {
            let bar = ProgressBar::hidden();
            bar.set_style(style(&progress));
            bar.set_length(progress.total().unwrap_or(0));
            shown.push((progress, bars.screen.add(bar)));
        }
    }
    for (progress, bar) in shown.iter() {
        let total = progress.total().unwrap_or(0);
        if bar.length() != Some(total) {
            bar.set_style(style(progress));
            bar.set_length(total);
        }
        bar.set_position(progress.steps_done());
        bar.tick();
    }
}

/// Returns the style of a bar: a bar only if the number of steps is known, and the elapsed time if there is only one step.
fn style(progress: &Arc<Progress>) -> ProgressStyle {
    let template = match progress.total() {
        Some(1) => "{label} {elapsed}",
        Some(_) => "{label} {wide_bar} {numbers}",
        None => "{label} {numbers}",
    };
    let (named, counted) = (Arc::clone(progress), Arc::clone(progress));
    let style = ProgressStyle::with_template(template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("label", move |_: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = text.write_str(&visible_in_line(&named.label));
        })
        .with_key("numbers", move |_: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = text.write_str(&numbers(&counted));
        })
}

/// Formats the progress: `1,200/5,000 queries, 340/s, 11 s left`.
fn numbers(progress: &Progress) -> String {
    let is_bytes = progress.unit == "bytes";
    let number = |count: u64| {
        if is_bytes { HumanBytes(count).to_string() } else { HumanCount(count).to_string() }
    };
    let total = progress.total().map_or(String::new(), |total| format!("/{}", number(total)));
    let unit = if is_bytes { String::new() } else { format!(" {}", progress.unit) };
    let rate = match progress.rate() {
        rate if is_bytes || rate >= 10.0 => format!("{}/s", number(rate as u64)),
        rate if rate >= 0.1 => format!("{rate:.1}/s"),
        rate => format!("{:.1}/min", 60.0 * rate),
    };
    let left = progress.seconds_left().map(time).unwrap_or_default();
    format!("{}{total}{unit}, {rate}{left}", number(progress.steps_done()))
}

/// Formats the remaining time: `, 1 h 05 min left`.
fn time(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!(", {seconds} s left"),
        (0, _) => format!(", {minutes} min {:02} s left", seconds % 60),
        _ => format!(", {hours} h {minutes:02} min left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_the_units_of_a_clock() {
        assert_eq!(time(0.4), ", 0 s left");
        assert_eq!(time(59.4), ", 59 s left");
        assert_eq!(time(61.0), ", 1 min 01 s left");
        assert_eq!(time(3_900.0), ", 1 h 05 min left");
    }
}

//! Cursors within a line: the text before the cursor moves from the target to the prompt.

use repoformer_text::tokenize::is_word;

use super::draw::Stream;
use super::kind::{HoleStart, Sampling};
use crate::task::Task;

impl Sampling {
    /// Moves the start of a task's hole from the start of a line to the cursor.
    pub(super) fn move_cursor(&self, task: &mut Task) {
        if self.cursor == HoleStart::LineStart {
            return;
        }
        let first = task.ground_truth.split('\n').next().unwrap_or_default();
        let mut starts = token_starts(first);
        starts.retain(|start| first[*start..].contains(is_word));
        if starts.is_empty() {
            return;
        }
        let place = Stream::for_cursor(self.seed, self.kind, task.hole_digest().content())
            .below(starts.len());
        // The indent belongs to the first token.
        if place > 0 {
            let target = task.ground_truth.split_off(starts[place]);
            task.prompt = [&*task.prompt, &task.ground_truth].concat().into();
            task.metadata.insert("ground_truth", target.clone().into());
            task.ground_truth = target;
            // The calls of the target may now be before the cursor.
            task.metadata.remove("definitions");
        }
    }
}

/// Returns the offsets at which words, and other characters except white space, begin.
fn token_starts(line: &str) -> Vec<usize> {
    let (mut starts, mut before) = (Vec::new(), ' ');
    for (at, c) in line.char_indices() {
        if !(c.is_whitespace() || is_word(c) && is_word(before)) {
            starts.push(at);
        }
        before = c;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::sample::Kind;

    #[test]
    fn cursors_stand_before_tokens_that_leave_a_word() {
        let sampling =
            |seed| Sampling { seed, cursor: HoleStart::AnyToken, ..Sampling::new(Kind::Chunk) };
        let lines = "    é1 = f(x_2).g()  # ü\n    return é1";
        let mut begun = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let mut task = Task::new("r/0".into(), "r/a.py", 0, 1, lines, "def h():\n");
            sampling(seed).move_cursor(&mut task);
            let left = task.prompt.strip_prefix("def h():\n").unwrap().to_owned();
            assert_eq!(format!("{left}{}", task.ground_truth), lines);
            assert_eq!(task.metadata.get("ground_truth").unwrap(), task.ground_truth);
            assert_eq!(task.line_no, 1);
            begun.insert(left);
        }
        let wanted = [
            "",
            "    é1 ",
            "    é1 = ",
            "    é1 = f",
            "    é1 = f(",
            "    é1 = f(x_2",
            "    é1 = f(x_2)",
            "    é1 = f(x_2).",
            "    é1 = f(x_2).g",
            "    é1 = f(x_2).g(",
            "    é1 = f(x_2).g()  ",
            "    é1 = f(x_2).g()  # ",
        ];
        assert_eq!(begun.into_iter().collect::<Vec<_>>(), wanted);
        // Only brackets: the cursor stays at the line's start.
        let mut task = Task::new("r/0".into(), "r/a.py", 0, 1, "  })", "x\n");
        sampling(3).move_cursor(&mut task);
        assert_eq!((task.prompt.as_str(), task.ground_truth.as_str()), ("x\n", "  })"));
    }
}

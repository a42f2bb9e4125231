//! The left contexts of a file's tasks overlap, so they are stored as parts of one text.

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::Task;

/// Text that may be a part of a longer text in memory.
pub type SharedText = arcstr::Substr;

/// Stores the left contexts of tasks while the tasks are read.
#[derive(Debug, Default)]
pub(super) struct LeftContexts {
    stretches: Vec<Stretch>,
    /// Indices of the stretches of each file, by their first lines.
    of_files: HashMap<String, BTreeMap<usize, usize>>,
    taken: Vec<TakenContexts>,
}

/// Consecutive lines of a file.
#[derive(Debug, Default)]
struct Stretch {
    text: String,
    /// Offsets at which the lines begin, and the end of the last finished line.
    line_starts: Vec<usize>,
}

impl Stretch {
    fn append(&mut self, text: &str) {
        let from = self.text.len();
        self.text.push_str(text);
        self.line_starts
            .extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| from + at + 1));
    }
}

/// Part of a stretch.
#[derive(Debug, Clone, Copy)]
struct Place {
    stretch: usize,
    start: usize,
    length: usize,
}

/// Places of the left contexts that were taken from a task.
#[derive(Debug, Default)]
struct TakenContexts {
    whole: Option<Place>,
    prompt: Option<Place>,
}

impl LeftContexts {
    /// Takes the left contexts from the next task.
    pub(super) fn take(&mut self, task: &mut Task) {
        let mut taken = TakenContexts::default();
        if !task.path.is_empty() {
            if let Some(whole) = task.full_left_context.take() {
                let place = self.store(&task.path, 0, &whole);
                taken.whole = Some(place);
                taken.prompt = whole.ends_with(&*task.prompt).then(|| {
                    let length = task.prompt.len();
                    Place { start: place.start + whole.len() - length, length, ..place }
                });
            } else {
                taken.prompt = Some(self.store(&task.path, task.context_start, &task.prompt));
            }
            if taken.prompt.is_some() {
                task.prompt = SharedText::new();
            }
        }
        self.taken.push(taken);
    }

    /// Stores the text of a file that begins with a line.
    fn store(&mut self, path: &str, first_line: usize, text: &str) -> Place {
        let of_file = self.of_files.entry(path.to_owned()).or_default();
        let length = text.len();
        if let Some((first, &stretch)) = of_file.range(..=first_line).next_back()
            && let Some(&start) = self.stretches[stretch].line_starts.get(first_line - first)
        {
            let known = &self.stretches[stretch].text[start..];
            if let Some(more) = text.strip_prefix(known) {
                self.stretches[stretch].append(more);
                return Place { stretch, start, length };
            } else if known.starts_with(text) {
                return Place { stretch, start, length };
            }
        }
        let mut new = Stretch { text: String::new(), line_starts: vec![0] };
        new.append(text);
        self.stretches.push(new);
        let stretch = self.stretches.len() - 1;
        of_file.insert(first_line, stretch);
        Place { stretch, start: 0, length }
    }

    /// Returns the contexts to the tasks from which they were taken.
    pub(super) fn give_back(self, tasks: &mut [Task]) {
        let stretches = self.stretches.into_iter().map(|stretch| SharedText::from(stretch.text));
        let stretches: Vec<SharedText> = stretches.collect();
        let text = |Place { stretch, start, length }| {
            SharedText::substr(&stretches[stretch], start..start + length)
        };
        for (task, taken) in tasks.iter_mut().zip(self.taken) {
            if let Some(whole) = taken.whole {
                task.full_left_context = Some(text(whole));
            }
            if let Some(prompt) = taken.prompt {
                task.prompt = text(prompt);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(path: &str, first: usize, prompt: &str) -> Task {
        Task::new("t".into(), path, first, first, "x", prompt)
    }

    /// Stores the contexts of tasks, checks that they come back, and returns the number of bytes stored.
    fn stored(tasks: &[Task]) -> usize {
        let (mut contexts, mut without) = (LeftContexts::default(), tasks.to_vec());
        without.iter_mut().for_each(|task| contexts.take(task));
        let stored = contexts.stretches.iter().map(|stretch| stretch.text.len()).sum();
        contexts.give_back(&mut without);
        assert_eq!(without, tasks);
        stored
    }

    #[test]
    fn contexts_that_overlap_are_stored_once() {
        let lines: Vec<String> = (0..1000).map(|n| format!("the line {n}\n")).collect();
        let mut tasks = Vec::new();
        for number in 0..1000_usize {
            // Neither in ascending nor in descending order.
            let hole = number * 7919 % 1000;
            let first = hole.saturating_sub(100);
            tasks.push(task("r/a.py", first, &lines[first..hole].concat()));
            tasks.push(task("r/other.py", 0, &format!("# other\n{}", lines[..hole].concat())));
            let begun = |first| [&lines[first..hole].concat(), &lines[hole][..4]].concat();
            tasks.push(Task {
                full_left_context: Some(begun(0).into()),
                ..task("r/third.py", first, &begun(first))
            });
        }
        let (stored, file) = (stored(&tasks), lines.concat().len());
        assert!(stored < 8 * file, "{stored} bytes of files with {file} bytes");
    }

    #[test]
    fn contexts_of_other_versions_are_kept() {
        let mut tasks = [
            task("r/a.py", 0, "one\ntwo\n"),
            task("r/a.py", 0, "one\nzwei\n"),
            task("r/a.py", 1, "two\nthree"),
            task("r/a.py", 1, "three"),
            task("r/a.py", 9, "\u{e9}\r\n\n"),
            task("r/a.py", usize::MAX, ""),
            task("", 0, "one\n"),
            task("r/b.py", 0, ""),
        ];
        tasks[3].full_left_context = Some("eins\n".into());
        stored(&tasks);
    }
}

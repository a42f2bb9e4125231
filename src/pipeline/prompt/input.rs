//! What a prompt is made from.

use crate::pipeline::kept::Input;
use crate::repository::window::RepoWindows;
use crate::retrieve::query::QueryWindow;
use crate::retrieve::{Found, Hole, HoleGuard};

/// Everything that a prompt is made from, but for the tasks and the settings: the query and of each window found its
/// similarity, its named places and the content of its file.
pub(super) fn input(
    found: &Found,
    query: &QueryWindow,
    windows: &RepoWindows,
    guard: HoleGuard,
) -> Input {
    let mut hasher = blake3::Hasher::new();
    let text = |hasher: &mut blake3::Hasher, text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    let numbers = |hasher: &mut blake3::Hasher, numbers: &[u32]| {
        numbers.iter().for_each(|n| {
            hasher.update(&n.to_le_bytes());
        });
    };
    let QueryWindow {
        row,
        sample,
        task_id,
        path,
        line_no,
        context_start,
        start,
        end,
        text: lines,
    } = query;
    let known = [*row, *sample, *line_no, *context_start, *start, *end];
    numbers(&mut hasher, &known);
    numbers(&mut hasher, &[found.row, found.sample]);
    [task_id, path, lines]
        .iter()
        .for_each(|part| text(&mut hasher, part));
    let hole = Hole::of_query(query, windows, guard);
    for hit in &found.hits {
        let places = hole.named_places(hit.window);
        numbers(&mut hasher, &[hit.overlap, hit.union, places.len() as u32]);
        let first = places.first().copied();
        let shown = first.unwrap_or_else(|| windows.first_place(hit.window as usize));
        hasher.update(&windows.files[shown.file as usize].digest);
        numbers(&mut hasher, &[hole.last_line(shown)]);
        for place in places {
            text(&mut hasher, &windows.files[place.file as usize].path);
            numbers(&mut hasher, &[place.line_no, place.start, place.end]);
        }
    }
    Input(*hasher.finalize().as_bytes())
}

/// The same for a prompt without retrieval, which depends on its task alone.
pub(super) fn input_of_row(row: usize) -> Input {
    Input(*blake3::hash(&(row as u64).to_le_bytes()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::window::{RepoWindows, WindowFile, WindowShape};
    use crate::retrieve::Hit;

    fn windows(files: &[(&str, &str)]) -> RepoWindows {
        let file = |(n, (path, text)): (usize, &(&str, &str))| {
            WindowFile::new((*path).into(), n as u32, (*text).into())
        };
        let files = files.iter().enumerate().map(file).collect();
        let shape = WindowShape {
            window_size: 4,
            ..WindowShape::default()
        };
        RepoWindows::cut_files("r".into(), files, shape)
    }

    #[test]
    fn each_thing_that_a_prompt_is_made_from_makes_another_input() {
        let hit = |window, overlap, union| Hit {
            window,
            overlap,
            union,
        };
        let found = |hits: &[Hit]| Found {
            row: 0,
            sample: 0,
            hits: hits.to_vec(),
        };
        let query = QueryWindow {
            row: 0,
            sample: 0,
            task_id: "r/0".into(),
            path: "r/b.py".into(),
            line_no: 3,
            context_start: 2,
            start: 2,
            end: 3,
            text: "x".into(),
        };
        let (a, b) = ("1\n2\n3\n4\n5\n6\n7\n8\n", "a\nb\nc\nd\ne\n");
        let repository = windows(&[("r/a.py", a), ("r/b.py", b)]);
        let hits = [hit(1, 2, 5), hit(2, 1, 5)];
        let of = |found: &Found, query: &QueryWindow, windows: &RepoWindows| {
            input(found, query, windows, HoleGuard::Strict)
        };
        let same = of(&found(&hits), &query, &repository);
        assert_eq!(same, of(&found(&hits), &query.clone(), &repository.clone()));

        let mut others = vec![
            // Another window, another similarity, another order, fewer.
            of(&found(&[hit(0, 2, 5), hits[1]]), &query, &repository),
            of(&found(&[hit(1, 3, 5), hits[1]]), &query, &repository),
            of(&found(&[hits[1], hits[0]]), &query, &repository),
            of(&found(&hits[..1]), &query, &repository),
            // A line more behind the windows, which the extended one may show; another name; a further place.
            of(
                &found(&hits),
                &query,
                &windows(&[("r/a.py", &format!("{a}9\n")), ("r/b.py", b)]),
            ),
            of(
                &found(&hits),
                &query,
                &windows(&[("r/aa.py", a), ("r/b.py", b)]),
            ),
            of(
                &found(&hits),
                &query,
                &windows(&[("r/a.py", a), ("r/b.py", b), ("r/c.py", a)]),
            ),
        ];
        let changes: [fn(&mut QueryWindow); 7] = [
            |query| query.row = 1,
            |query| query.sample = 1,
            |query| query.task_id.push('0'),
            |query| query.line_no = 4,
            |query| query.context_start = 1,
            |query| query.end = 4,
            |query| query.text.push('y'),
        ];
        for change in changes {
            let mut query = query.clone();
            change(&mut query);
            others.push(of(&found(&hits), &query, &repository));
        }
        // The hole in the file that is shown: extension stops at another line.
        let own = |context_start| QueryWindow {
            path: "r/a.py".into(),
            context_start,
            ..query.clone()
        };
        others.extend([7, 8].map(|line| of(&found(&hits[..1]), &own(line), &repository)));
        others.push(same);
        let different: std::collections::HashSet<[u8; 32]> =
            others.iter().map(|input| input.0).collect();
        assert_eq!(different.len(), others.len());
    }
}

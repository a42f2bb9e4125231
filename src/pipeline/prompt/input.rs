//! What a prompt is made from.

use crate::pipeline::kept::Input;
use crate::query::QueryWindow;
use crate::retrieve::{Found, Hole, HoleGuard};
use crate::window::RepoWindows;

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

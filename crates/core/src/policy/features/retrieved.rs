//! Features of the retrieved fragments.

use super::numbers::{flag, log, share};
use super::tokens::{Match, NEWLINE, Tokens, WordSet, find_end, find_start, is_word};
use super::{Context, FAMILIAR_LINES, features};

features! {
    /// Features of the retrieved fragments.
    Retrieved {
        fragments: "Fragments retrieved",
        top_score: "Score of the best fragment",
        top_gap: "Score of the best fragment minus the second-best score",
        third_gap: "Score of the best fragment minus the third-best score",
        mean_score: "Mean score",
        last_score: "Score of the last fragment",
        overlap: "Largest fraction of the names near the hole in any fragment",
        top_overlap: "Fraction of the names near the hole that are in the best fragment",
        overlap_gain:
            "Largest fraction in any fragment minus the largest in other lines of the file",
        unseen_found:
            "Of the names near the hole that are new to the file, the fraction in the fragments",
        unseen_found_count: "Names near the hole that are new to the file and occur in the fragments",
        match_tokens: "Tokens in the longest suffix of the left context found in a fragment",
        match_lines: "Lines in the longest suffix of the left context found in a fragment",
        match_gain: "Longest suffix of the left context in a fragment minus the longest in the file",
        match_rank:
            "Rank of the fragment with the longest suffix, from 1; 0 if no fragment has one",
        match_fragments:
            "Fragments with a suffix at least half as long as the longest",
        follow_tokens: "Tokens in the longest prefix of the right context found in a fragment",
        follow_lines: "Lines in the longest prefix of the right context found in a fragment",
        follow_gain: "Longest prefix of the right context in a fragment minus the longest in the file",
        familiar: "Fraction of the last five lines' token trigrams that occur in the fragments",
        familiar_gain: "Fraction of these trigrams in the fragments minus the fraction in the file",
        familiar_behind:
            "Fraction of the next five lines' token trigrams that occur in the fragments",
        bridge: "A fragment repeats text from before the hole, then text from after it",
        bridge_tokens: "Tokens between these two repeated texts",
        bridge_match: "Tokens in these two repeated texts",
        next_known: "Fraction of the names in the line after the longest match that are in the file",
        next_tokens: "Tokens in the line after the longest match",
        next_in_file: "The line after the longest match occurs in the file",
        agreement: "Fraction of the matching fragments that continue with the same line",
        agrees_with_file: "The file's own longest match continues with the same line",
        new_names: "Names in the best fragment that are not in the file",
        same_folder: "The best fragment's file is in the same folder",
        common_folders: "Leading folders that the paths of the best fragment and the current file share",
        same_name: "The two files have the same name",
        from_test: "The best fragment's file is a test",
        files: "Different files among the fragments",
        tokens: "Tokens in all fragments",
    }
}

impl Retrieved {
    /// Computes the features; all are 0 if nothing was retrieved.
    pub fn new(context: &Context<'_>) -> Self {
        let fragments = context.request.fragments;
        let Some(best) = fragments.first() else {
            return Self::default();
        };
        let read = |fragment: &crate::task::cross_file::CrossFileFragment| {
            Tokens::from_text(super::head(&fragment.text, super::FRAGMENT_BYTES))
        };
        let texts: Vec<Tokens> = fragments.iter().map(read).collect();
        // Rankers' scores have no fixed range, so extreme ones are clamped.
        let score = |at: usize| {
            let score = fragments.get(at).and_then(|fragment| fragment.score);
            score.filter(|score| !score.is_nan()).unwrap_or(0.0).clamp(-1e6, 1e6) as f32
        };
        let (left, right) = (&context.left.all, &context.right.all);

        let mut file = WordSet::with_room(left.len() + right.len());
        for &token in left.iter().chain(right) {
            if is_word(token) {
                file.insert(token);
            }
        }
        let overlaps: Vec<f32> = texts.iter().map(|t| context.near_share(&t.all)).collect();
        let overlap = overlaps.iter().copied().fold(0.0, f32::max);
        let ends: Vec<Match> = texts.iter().map(|t| find_end(left, &t.all)).collect();
        let (own_end, own_start) = (context.repeat, context.follow);
        // If several are longest, take the first.
        let longest = (0..ends.len()).rev().max_by_key(|&at| ends[at].length);
        let longest = longest.filter(|&at| ends[at].length > 0);
        let end = longest.map_or(Match::default(), |at| ends[at]);
        let start = texts
            .iter()
            .map(|t| find_start(right, &t.all, 0))
            .max_by_key(|found| found.length)
            .unwrap_or_default();
        let triples = |tokens: &[u32]| {
            let mut triples = super::Triples::new(tokens);
            texts.iter().for_each(|text| triples.find_in(&text.all));
            triples.share()
        };
        let familiar = triples(context.left.last_lines(FAMILIAR_LINES));
        let bridge = bridge(&texts, &ends, right);
        let next = longest.map_or(&[][..], |at| next_line(&texts[at].all, ends[at].at));
        let names = next.iter().filter(|t| is_word(**t)).count();
        let known = next.iter().filter(|t| is_word(**t) && file.contains(**t)).count();
        let matching: Vec<usize> = (0..ends.len())
            .filter(|&at| ends[at].length > 0 && 2 * ends[at].length >= end.length)
            .collect();
        let agreeing =
            matching.iter().filter(|&&at| next_line(&texts[at].all, ends[at].at) == next);
        let own_next = if own_end.length == 0 { &[][..] } else { next_line(left, own_end.at) };
        let (unseen, found) = unseen(context, &texts);
        let mut new_names = WordSet::with_room(texts[0].all.len());
        for &token in &texts[0].all {
            if is_word(token) && !file.contains(token) {
                new_names.insert(token);
            }
        }
        let path = context.request.path.split_once('/').map_or("", |(_, file)| file);
        let (folder, name) = split(path);
        let (best_folder, best_name) = split(&best.path);
        let common =
            (folder.split('/').zip(best_folder.split('/'))).take_while(|(a, b)| a == b).count();
        let mut files: Vec<&str> = fragments.iter().map(|f| f.path.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        let mean = (0..fragments.len()).map(score).sum::<f32>() / fragments.len() as f32;
        Self {
            fragments: fragments.len() as f32,
            top_score: score(0),
            top_gap: score(0) - score(1),
            third_gap: score(0) - score(2),
            mean_score: mean,
            last_score: score(fragments.len() - 1),
            overlap,
            top_overlap: overlaps[0],
            overlap_gain: overlap - super::local::near_overlap(context),
            unseen_found: share(found, unseen),
            unseen_found_count: log(found),
            match_tokens: log(end.length),
            match_lines: end.lines as f32,
            match_gain: log(end.length) - log(own_end.length),
            match_rank: longest.map_or(0.0, |at| (at + 1) as f32),
            match_fragments: matching.len() as f32,
            follow_tokens: log(start.length),
            follow_lines: start.lines as f32,
            follow_gain: log(start.length) - log(own_start.length),
            familiar,
            familiar_gain: familiar - context.familiar[0],
            familiar_behind: triples(context.right.first_lines(FAMILIAR_LINES)),
            bridge: flag(bridge.is_some()),
            bridge_tokens: bridge.map_or(0.0, |(between, _)| log(between)),
            bridge_match: bridge.map_or(0.0, |(_, agree)| log(agree)),
            next_known: share(known, names),
            next_tokens: log(next.len()),
            next_in_file: flag(!next.is_empty() && holds_line(left, right, next)),
            agreement: share(agreeing.count(), matching.len()),
            agrees_with_file: flag(!next.is_empty() && own_next == next),
            new_names: log(new_names.len()),
            same_folder: flag(folder == best_folder),
            common_folders: common as f32,
            same_name: flag(name == best_name),
            from_test: flag(best.path.split('/').any(super::is_test_name)),
            files: files.len() as f32,
            tokens: log(texts.iter().map(|t| t.all.len()).sum()),
        }
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the tokens from an index to the end of its line.
fn next_line(tokens: &[u32], from: usize) -> &[u32] {
    let rest = tokens.get(from..).unwrap_or(&[]);
    let end = rest.iter().position(|&token| token == NEWLINE);
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns true if either context has a line that ends with these tokens.
fn holds_line(left: &[u32], right: &[u32], line: &[u32]) -> bool {
    let ends = |tokens: &[u32]| {
        (tokens.split(|&token| token == NEWLINE)).any(|other| other.ends_with(line))
    };
    ends(left) || ends(right)
}

/// Finds the fragment with the longest match of the text before the hole that is followed by a match of the text after the
/// hole. Returns the number of tokens between the two matches, and the number of tokens in both.
fn bridge(texts: &[Tokens], ends: &[Match], right: &[u32]) -> Option<(usize, usize)> {
    const FARTHEST: usize = 200;
    let mut best: Option<(usize, usize)> = None;
    for (text, end) in texts.iter().zip(ends) {
        if end.length < 2 {
            continue;
        }
        let start = find_start(right, &text.all, end.at);
        if start.length > 1 && start.at - end.at < FARTHEST {
            let agree = start.length + end.length;
            if best.is_none_or(|(_, most)| agree > most) {
                best = Some((start.at - end.at, agree));
            }
        }
    }
    best
}

/// Returns the number of near names that occur nowhere else in the file, and how many of these the fragments contain.
fn unseen(context: &Context<'_>, texts: &[Tokens]) -> (usize, usize) {
    let mut wanted = 0u64;
    for (number, &count) in context.elsewhere.iter().enumerate() {
        if count == 0 {
            wanted |= 1 << number;
        }
    }
    let found = context.near.bits(texts.iter().flat_map(|text| &text.all));
    (wanted.count_ones() as usize, (wanted & found).count_ones() as usize)
}

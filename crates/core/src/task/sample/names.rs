//! Sources of the names in a task's target.

use std::collections::BTreeSet;
use std::ops::Range;

use foldhash::HashSet;
use repoformer_text::language::syntax::Syntax;
use repoformer_text::language::{Grammar, Language, chains, identifiers};
use repoformer_text::named;
use serde_json::{Value, json};

use crate::repository::corpus::Repository;
use crate::repository::definitions::{Definitions, FoundDefinitions, KnownNames, Names};
use crate::task::Task;

/// Nearest place that has a name, from near to far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameSource {
    /// The hole's own file, before or after the hole.
    File,
    /// A file that defines a name used in the hole's file, usually an imported file.
    Import,
    /// Another file of the repository.
    Repository,
    /// No file of the repository.
    Nowhere,
}

named! {
    NameSource, "source of a name":
    File = "file",
    Import = "import",
    Repository = "repository",
    Nowhere = "nowhere",
}

/// Counts of a target's names by source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourcesOfNames([usize; NameSource::ALL.len()]);

impl SourcesOfNames {
    /// Searches for the names of a task's target in the repository, whose file has the hole's lines in these rows.
    pub(super) fn new(
        repository: &Repository,
        task: &Task,
        rows: Range<usize>,
        language: Language,
        known: &KnownNames,
    ) -> Self {
        let mut wanted: HashSet<&str> =
            identifiers(&task.ground_truth, language).into_iter().collect();
        let Some(own) = repository.files.iter().position(|file| file.path == task.path) else {
            return Self::default();
        };
        let mut counts = [0; NameSource::ALL.len()];
        let mut take = |source: NameSource, wanted: &mut HashSet<&str>, texts: &[&str]| {
            for name in texts.iter().flat_map(|text| identifiers(text, language)) {
                counts[source as usize] += usize::from(wanted.remove(name));
            }
        };
        let lines = repository.files[own].lines();
        let behind = lines.range(rows.end.min(lines.count()), lines.count());
        let before = lines.range(0, rows.start);
        let begun = task.prompt.rsplit('\n').next().unwrap_or_default();
        take(NameSource::File, &mut wanted, &[before, begun, behind]);
        if !wanted.is_empty() {
            let imported = imported_files(repository, own, rows.start, language, known);
            let text = |file: &usize| repository.files[*file].text.as_str();
            let texts: Vec<&str> = imported.iter().map(text).collect();
            take(NameSource::Import, &mut wanted, &texts);
            let others = (0..repository.files.len()).filter(|file| *file != own);
            let texts: Vec<&str> =
                others.map(|file| repository.files[file].text.as_str()).collect();
            take(NameSource::Repository, &mut wanted, &texts);
        }
        counts[NameSource::Nowhere as usize] = wanted.len();
        Self(counts)
    }

    /// Returns the number of names from a source.
    pub fn count(&self, source: NameSource) -> usize {
        self.0[source as usize]
    }

    /// Returns the farthest source of any name; the hole's file if the target has no names.
    pub fn farthest(&self) -> NameSource {
        let mut sources = NameSource::ALL.into_iter().rev();
        sources.find(|source| self.count(*source) > 0).unwrap_or(NameSource::File)
    }

    /// Returns the counts, by the names of the sources.
    pub(super) fn counts(&self) -> Value {
        let counts =
            NameSource::ALL.map(|source| (source.name().to_owned(), json!(self.count(source))));
        Value::Object(counts.into_iter().collect())
    }
}

/// Returns the numbers of the other files that define a name used in a file.
fn imported_files(
    repository: &Repository,
    own: usize,
    row: usize,
    language: Language,
    known: &KnownNames,
) -> BTreeSet<usize> {
    let (paths, names) = known.of_repository(repository, language);
    let definitions = Definitions::new(language, &paths, &names);
    let file = &repository.files[own];
    let lines = file.lines();
    let grammar = Grammar::for_path(language, &file.path);
    let Some(syntax) = Syntax::of_lines(&lines, grammar) else { return BTreeSet::new() };
    let own_names = Names::read(&file.path, &syntax);
    let look_up = definitions.within(own, &own_names, row as u32);
    let chains: HashSet<Vec<&str>> = lines.iter().flat_map(|line| chains(line, language)).collect();
    let parts = chains.iter().flat_map(|chain| (1..=chain.len()).map(|length| &chain[..length]));
    let found = FoundDefinitions::distinct(parts.map(|chain| (look_up(chain), ())), |(), ()| ());
    let files = found.flat_map(|(found, ())| found.files());
    files.filter(|found| *found != own).collect()
}

//! Compares the artifacts of a cache folder with each other.

use std::collections::BTreeMap;
use std::path::Path;

use foldhash::HashMap;
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::Retrieval;
use repoformer_core::task::TaskSet;
use repoformer_store::artifact::{Header, Payload};

use super::file::{CacheFile, CacheSources, Condition};
use crate::contexts::RightContexts;

/// A file, and its header if it has a readable one.
pub(super) type HeadedFile = (CacheFile, Option<Header>);

/// Inputs that are artifacts of the cache, by the checksums in their headers.
const ARTIFACTS: [&str; 8] = [
    "fragments", "queries", "vectors", "query vectors", "dense vectors", "dense queries",
    "prompts", "right contexts",
];

/// Compares the inputs that are artifacts of the cache: missing ones were rebuilt differently, or removed.
pub(super) fn compare_inputs(found: &mut [HeadedFile]) {
    let checksums = checksums(found);
    let unreadable = unreadable(found);
    for (file, header) in found.iter_mut() {
        let Some(header) = header.as_ref().filter(|_| file.condition == Condition::Current) else {
            continue;
        };
        let lost = inputs(header).find(|(_, checksum)| !checksums.contains_key(*checksum));
        if let Some((name, _)) = lost {
            let stale = Condition::Stale(format!("built from a different version of its {name}"));
            file.condition = unreadable.clone().unwrap_or(stale);
        }
    }
}

/// Returns the condition of an artifact with a missing input, if a file cannot be read: that file may be the input.
fn unreadable(found: &[HeadedFile]) -> Option<Condition> {
    let (file, _) =
        found.iter().find(|(file, _)| matches!(file.condition, Condition::Unreadable(_)))?;
    let path = file.path.display();
    Some(Condition::Unknown(format!("its possible input {path} cannot be read")))
}

/// Returns the index of each artifact by its checksum.
fn checksums(found: &[HeadedFile]) -> HashMap<String, usize> {
    let of = |(index, (_, header)): (usize, &HeadedFile)| {
        Some((header.as_ref()?.checksum.clone(), index))
    };
    found.iter().enumerate().filter_map(of).collect()
}

/// Returns the inputs of an artifact that are themselves artifacts.
fn inputs(header: &Header) -> impl Iterator<Item = (&str, &str)> {
    let is_artifact = |name: &str| {
        ARTIFACTS.contains(&name) || name == "predictions" && header.identity.kind == "scores"
    };
    let all = header.identity.inputs.iter().map(|(name, checksum)| (&**name, &**checksum));
    all.filter(move |(name, _)| is_artifact(name))
}

/// Marks artifacts built from outdated ones.
pub(super) fn spread(found: &mut [HeadedFile]) {
    let checksums = checksums(found);
    // A chain from fragments to scores has seven artifacts.
    for _ in 0..7 {
        for index in 0..found.len() {
            let (file, Some(header)) = &found[index] else { continue };
            if !matches!(file.condition, Condition::Current | Condition::Unknown(_)) {
                continue;
            }
            let is_current = file.condition == Condition::Current;
            let of = inputs(header).filter_map(|(name, checksum)| {
                let (input, _) = &found[*checksums.get(checksum)?];
                Some((name, &input.condition))
            });
            let condition = { of }.find_map(|(name, condition)| match condition {
                Condition::Stale(_) | Condition::Damaged(_) => {
                    let state = condition.name();
                    Some(Condition::Stale(format!("built from {state} {name}")))
                }
                Condition::Unknown(reason) if is_current => {
                    Some(Condition::Unknown(reason.clone()))
                }
                _ => None,
            });
            if let Some(condition) = condition {
                found[index].0.condition = condition;
            }
        }
    }
}

/// Compares prompts with their retrieval results, of which they record one digest: see `prompt_sources::Sources::digest`.
pub(super) fn compare_prompts(found: &mut [HeadedFile], sources: &CacheSources) {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut contexts: HashMap<(String, String), usize> = HashMap::default();
    for (index, (file, header)) in found.iter().enumerate() {
        let Some(header) = header else { continue };
        let parameters = &header.identity.parameters;
        let benchmark = file.benchmark.clone().unwrap_or_default();
        let kind = header.identity.kind.as_str();
        if kind == RightContexts::KIND {
            let name = parameters.get("repository").cloned().unwrap_or_default();
            contexts.insert((benchmark, name), index);
        } else if kind == Retrieval::KIND || kind == RepoFragments::KIND {
            let shared = parameters.iter().filter(|(name, _)| !OF_ONE.contains(&name.as_str()));
            let shared: Vec<_> = shared.collect();
            let folder = file.path.parent().unwrap_or(Path::new("")).display();
            // The name shows which queries were used: `alpha_chunk20_stride10.left-right20.jaccard.top20.bin`.
            let (name, own) = (file.path.file_name(), parameters.get("repository"));
            let name = name.unwrap_or_default().to_string_lossy();
            let kind = own.and_then(|own| name.strip_prefix(own.as_str())).unwrap_or_default();
            groups.entry(format!("{folder} {kind} {shared:?}")).or_default().push(index);
        }
    }
    let groups: Vec<Vec<usize>> = groups.into_values().collect();
    let unreadable = unreadable(found);
    for index in 0..found.len() {
        let (file, Some(header)) = &found[index] else { continue };
        if header.identity.kind != "prompts" || file.condition != Condition::Current {
            continue;
        }
        let members = |group: &&Vec<usize>| is_source(found, file, header, group);
        let Some(made_from) = header.identity.inputs.get("retrieval") else { continue };
        let benchmark = file.benchmark.clone().unwrap_or_default();
        // Benchmarks share fragments, and each has its own repositories.
        let named = sources.tasks.get(&benchmark).map(TaskSet::repositories).unwrap_or_default();
        let is_of_tasks = |member: &usize| named.contains(&repository(found, *member));
        let of_tasks = |group: &Vec<usize>| match group.iter().copied().filter(is_of_tasks) {
            some if retrieves(header) || some.clone().next().is_none() => group.clone(),
            some => some.collect(),
        };
        let fitting: Vec<Vec<usize>> = groups.iter().filter(members).map(of_tasks).collect();
        let context = |name: &str| contexts.get(&(benchmark.clone(), name.to_owned())).copied();
        let is_made = |group: &Vec<usize>| {
            let without = digest_of(found, group, |_| None);
            without == *made_from || digest_of(found, group, context) == *made_from
        };
        let count = header.identity.parameters.get("repositories");
        let what = if retrieves(header) { "retrieval results" } else { "fragments" };
        let condition = match fitting.iter().find(|group| is_made(group)) {
            Some(group) => {
                let stale = group.iter().map(|member| &found[*member].0.condition);
                let is_bad =
                    |one: &Condition| matches!(one, Condition::Stale(_) | Condition::Damaged(_));
                let mut stale = stale.filter(|one| is_bad(one));
                stale.next().map(|_| Condition::Stale(format!("built from stale {what}")))
            }
            None if has_none(header) => {
                let of_it = contexts.iter().filter(|((of, _), _)| *of == benchmark);
                let mut of_it: Vec<(&str, usize)> =
                    of_it.map(|((_, name), index)| (name.as_str(), *index)).collect();
                of_it.sort_unstable();
                compare_contexts(found, &of_it, made_from)
            }
            None => {
                let all = fitting.iter().any(|group| Some(&group.len().to_string()) == count);
                Some(if all {
                    Condition::Stale(format!("built from a different version of its {what}"))
                } else {
                    Condition::Unknown("some or all of its retrieval results are missing".into())
                })
            }
        };
        if let Some(condition) = condition {
            found[index].0.condition = unreadable.clone().unwrap_or(condition);
        }
    }
}

/// Parameters that differ between the artifacts of one retrieval.
const OF_ONE: [&str; 3] = ["repository", "fragments-file", "queries-file"];

fn retrieves(header: &Header) -> bool {
    !matches!(header.identity.parameters.get("mode").map(String::as_str), Some("none" | "given"))
}

/// True if prompts show neither fragments nor holes found in fragments.
fn has_none(header: &Header) -> bool {
    let style = header.identity.parameters.get("prompt-style");
    !retrieves(header) && style.is_none_or(|style| style != "repocoder")
}

/// Compares prompts that show no fragments with the right contexts of their benchmark.
fn compare_contexts(
    found: &[HeadedFile],
    contexts: &[(&str, usize)],
    made_from: &str,
) -> Option<Condition> {
    let digest = |is_shown: bool| {
        let mut hasher = blake3::Hasher::new();
        for (name, index) in contexts {
            hasher.update(name.as_bytes());
            let header = found[*index].1.as_ref().filter(|_| is_shown);
            if let Some(header) = header {
                hasher.update(header.checksum.as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    };
    if contexts.is_empty() || digest(false) == made_from {
        return None;
    }
    if digest(true) != made_from {
        return Some(Condition::Stale(
            "built from a different version of its right contexts".into(),
        ));
    }
    let is_current = |(_, index): &(&str, usize)| found[*index].0.condition == Condition::Current;
    let reason = "built from stale right contexts";
    (!contexts.iter().all(is_current)).then(|| Condition::Stale(reason.into()))
}

/// True if prompts can come from a group of artifacts: retrieval in their mode, or fragments if the prompts do not retrieve.
fn is_source(found: &[HeadedFile], file: &CacheFile, prompts: &Header, group: &[usize]) -> bool {
    let Some((first, Some(header))) = group.first().map(|index| &found[*index]) else {
        return false;
    };
    let own = &prompts.identity.parameters;
    let retrieves = retrieves(prompts);
    if retrieves != (header.identity.kind == Retrieval::KIND) {
        return false;
    }
    let is_same = |(name, value): (&String, &String)| {
        OF_ONE.contains(&name.as_str())
            || name == "tokenizer"
            || own.get(name).is_none_or(|known| known == value)
    };
    (!retrieves || first.benchmark == file.benchmark)
        && header.identity.parameters.iter().all(is_same)
}

/// Returns the repository of an artifact.
fn repository(found: &[HeadedFile], index: usize) -> String {
    let parameters = found[index].1.as_ref().map(|header| &header.identity.parameters);
    parameters.and_then(|of| of.get("repository")).cloned().unwrap_or_default()
}

fn digest_of(
    found: &[HeadedFile],
    group: &[usize],
    context: impl Fn(&str) -> Option<usize>,
) -> String {
    let header = |index: usize| found[index].1.as_ref();
    let mut members: Vec<(String, usize)> =
        group.iter().map(|index| (repository(found, *index), *index)).collect();
    members.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for (name, index) in members {
        hasher.update(name.as_bytes());
        let contexts = context(&name).and_then(header).map(|header| &header.checksum);
        let Some(of) = header(index) else { continue };
        let inputs = ["fragments", "queries"].into_iter();
        let inputs = inputs.filter_map(|input| of.identity.inputs.get(input));
        for checksum in contexts.into_iter().chain(inputs).chain([&of.checksum]) {
            hasher.update(checksum.as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

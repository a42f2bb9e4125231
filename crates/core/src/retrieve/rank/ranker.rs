//! Names of the rankers.

use std::fmt;
use std::slice;
use std::str::FromStr;

use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;

use super::codebleu;

/// Way to rank documents by a query. Parses and prints as [`Ranker::NAMES`], `rrf:NAME,NAME,…` and `graph:RANKER`.
///
/// ```
/// use repoformer_core::retrieve::rank::{LineWeights, Ranker};
/// let by_line: Ranker = "bm25-by-line-reciprocal".parse().unwrap();
/// assert_eq!(by_line, Ranker::Bm25ByLine(LineWeights::Reciprocal));
/// let fusion: Ranker = "rrf:jaccard,bm25".parse().unwrap();
/// assert_eq!(fusion, Ranker::Fusion(vec![Ranker::Jaccard, Ranker::Bm25]));
/// assert_eq!(fusion.to_string(), "rrf:jaccard,bm25");
/// assert!("rrf:bm25".parse::<Ranker>().is_err());
/// let prior: Ranker = "graph:bm25".parse().unwrap();
/// assert_eq!(prior, Ranker::Graph(Ranker::Bm25.into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ranker {
    /// |A∩B| / |A∪B| of the sets of words; 0 for two empty sets.
    Jaccard,
    /// Okapi's BM25 as `rank_bm25.BM25Okapi` computes it, with k1 1.5, b 0.75, epsilon 0.25.
    Bm25,
    /// BM25 of each line of the query separately; the scores are weighted by the line's distance from the hole and summed.
    Bm25ByLine(LineWeights),
    /// Cosine of TF-IDF vectors of lower-cased texts, as scikit-learn's `TfidfVectorizer` computes them (CrossCodeEval).
    TfIdf,
    /// CodeBLEU's weighted n-gram match, with the query as the reference.
    WeightedNgram,
    /// Complete CodeBLEU, with the query as the reference; for some languages only ([`Ranker::refusal`]).
    CodeBleu,
    /// Cosine of dense vectors, which the caller provides.
    Dense,
    /// Fragments that define the names near the hole, which the caller provides
    /// ([`DefinitionIndex`](crate::retrieve::definitions::DefinitionIndex)); other fragments are not retrieved.
    Definitions,
    /// Reciprocal rank fusion: the sum of 1/(60 + rank) over several rankers (Cormack, Clarke and Büttcher 2009).
    Fusion(Vec<Ranker>),
    /// Another ranker, whose scores are multiplied by a prior of the fragment's file, which the caller provides
    /// ([`FileGraph`](crate::retrieve::graph::FileGraph)). For a fusion, each ranker's scores are multiplied.
    Graph(Box<Ranker>),
}

/// Weight of a line of the query at distance i from the hole (Repoformer's `bm25_line_by_line` and its two weighted variants).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineWeights {
    /// 1.
    Equal,
    /// 1/(i + 1).
    Reciprocal,
    /// e^−i.
    Exponential,
}

impl LineWeights {
    /// Returns the weight of a line at this distance from the hole.
    ///
    /// ```
    /// use repoformer_core::retrieve::rank::LineWeights;
    /// assert_eq!(LineWeights::Equal.at(7), 1.0);
    /// assert_eq!(LineWeights::Reciprocal.at(3), 0.25);
    /// assert_eq!(LineWeights::Exponential.at(1), 0.367_879_441_171_442_33); // e^−1, from tables
    /// ```
    pub fn at(self, distance: usize) -> f64 {
        match self {
            Self::Equal => 1.0,
            Self::Reciprocal => 1.0 / (distance as f64 + 1.0),
            Self::Exponential => libm::exp(-(distance as f64)),
        }
    }
}

/// Every ranker that has its own name.
const NAMED: [(&str, Ranker); 10] = [
    ("jaccard", Ranker::Jaccard),
    ("bm25", Ranker::Bm25),
    ("bm25-by-line", Ranker::Bm25ByLine(LineWeights::Equal)),
    ("bm25-by-line-reciprocal", Ranker::Bm25ByLine(LineWeights::Reciprocal)),
    ("bm25-by-line-exponential", Ranker::Bm25ByLine(LineWeights::Exponential)),
    ("tf-idf", Ranker::TfIdf),
    ("weighted-ngram", Ranker::WeightedNgram),
    ("codebleu", Ranker::CodeBleu),
    ("dense", Ranker::Dense),
    ("definitions", Ranker::Definitions),
];

/// Prefix of the name of a fusion.
const FUSION: &str = "rrf:";
/// Prefix of the name of a ranker with a prior.
const GRAPH: &str = "graph:";

impl Ranker {
    /// Names of all rankers, except fusions and rankers with a prior.
    pub const NAMES: [&str; 10] = {
        let mut names = [""; 10];
        let mut ranker = 0;
        while ranker < 10 {
            names[ranker] = NAMED[ranker].0;
            ranker += 1;
        }
        names
    };

    /// Returns the rankers whose rankings are combined: a fusion's rankers, or the ranker itself, without a prior.
    ///
    /// ```
    /// use repoformer_core::retrieve::rank::Ranker;
    /// let fusion: Ranker = "rrf:dense,bm25".parse().unwrap();
    /// assert!(fusion.parts().contains(&Ranker::Dense));
    /// assert_eq!(Ranker::Bm25.parts(), [Ranker::Bm25]);
    /// ```
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Fusion(rankers) => rankers,
            Self::Graph(ranker) => ranker.parts(),
            _ => slice::from_ref(self),
        }
    }

    /// Returns true if the ranker retrieves definitions, alone or with other fragments.
    pub fn finds_definitions(&self) -> bool {
        self.parts().contains(&Self::Definitions)
    }

    /// Returns true if the ranker needs a prior of the fragments' files.
    pub fn has_prior(&self) -> bool {
        matches!(self, Self::Graph(_))
    }

    /// Returns the reason why the ranker does not support a language; `None` if it does.
    ///
    /// ```
    /// use repoformer_core::retrieve::rank::Ranker;
    /// use repoformer_text::language::Language;
    /// let fusion: Ranker = "rrf:codebleu,bm25".parse().unwrap();
    /// assert_eq!(fusion.refusal(Language::Go), None);
    /// let refusal = "ranker codebleu supports python, java, csharp, go, not typescript";
    /// assert_eq!(fusion.refusal(Language::TypeScript).as_deref(), Some(refusal));
    /// ```
    pub fn refusal(&self, language: Language) -> Option<String> {
        if !self.parts().contains(&Self::CodeBleu) || codebleu::is_defined_for(language) {
            return None;
        }
        let known = Language::ALL.into_iter().filter(|known| codebleu::is_defined_for(*known));
        let names = known.map(Language::name).collect::<Vec<_>>().join(", ");
        let name = Self::CodeBleu;
        Some(format!("ranker {name} supports {names}, not {language}"))
    }

    fn from_name(name: &str) -> Option<Self> {
        let found = NAMED.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, ranker)| ranker)
    }
}

impl fmt::Display for Ranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Graph(ranker) = self {
            return write!(f, "{GRAPH}{ranker}");
        }
        if let Self::Fusion(rankers) = self {
            f.write_str(FUSION)?;
            for (number, ranker) in rankers.iter().enumerate() {
                write!(f, "{}{ranker}", if number > 0 { "," } else { "" })?;
            }
            return Ok(());
        }
        let name = NAMED.iter().find(|(_, ranker)| ranker == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Ranker {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let unknown = |name: &str| Error::unknown("ranker", name, Self::NAMES);
        if let Some(ranker) = name.strip_prefix(GRAPH) {
            return match ranker.parse()? {
                Self::Graph(_) => Err(Error::parameter(
                    "ranker",
                    format!("'{name}': the prefix '{GRAPH}' may occur only once"),
                )),
                ranker => Ok(Self::Graph(ranker.into())),
            };
        }
        let Some(parts) = name.strip_prefix(FUSION) else {
            return Self::from_name(name).ok_or_else(|| unknown(name));
        };
        let refused = |reason| Error::parameter("ranker", format!("'{name}': a fusion {reason}"));
        let part = |part: &str| match Self::from_name(part) {
            Some(ranker) => Ok(ranker),
            None if part.starts_with(GRAPH) => Err(refused(format!(
                "takes the prefix '{GRAPH}' as a whole, as in {GRAPH}{FUSION}jaccard,bm25"
            ))),
            None if part == "rrf" || part.starts_with(FUSION) => {
                Err(refused("cannot contain another fusion".to_owned()))
            }
            None => Err(unknown(part)),
        };
        let rankers: Vec<Self> = parts.split(',').map(part).collect::<Result<_, _>>()?;
        if rankers.len() < 2 {
            return Err(refused(format!("needs two rankers or more, as in {FUSION}jaccard,bm25")));
        }
        Ok(Self::Fusion(rankers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for name in Ranker::NAMES.into_iter().chain([
            "rrf:jaccard,bm25",
            "rrf:dense,tf-idf,bm25-by-line",
            "graph:jaccard",
            "graph:rrf:jaccard,bm25",
        ]) {
            assert_eq!(name.parse::<Ranker>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn an_unknown_ranker_is_refused_with_the_names() {
        for (name, reason) in [
            ("", "unknown ranker ''; known: jaccard, bm25, bm25-by-line, "),
            ("BM25", "unknown ranker 'BM25'"),
            ("rrf", "unknown ranker 'rrf'"),
            ("rrf:", "unknown ranker ''; known: jaccard, "),
            ("rrf:jaccard", "ranker: 'rrf:jaccard': a fusion needs two rankers"),
            ("rrf:jaccard,", "unknown ranker ''"),
            ("graph:", "unknown ranker ''"),
            (
                "graph:graph:bm25",
                "ranker: 'graph:graph:bm25': the prefix 'graph:' may occur only once",
            ),
            (
                "rrf:graph:bm25,jaccard",
                "ranker: 'rrf:graph:bm25,jaccard': a fusion takes the prefix 'graph:' as a whole",
            ),
            ("rrf:jaccard,rrf:bm25,dense", "ranker: 'rrf:jaccard,rrf:bm25,dense': a fusion cannot"),
        ] {
            let error = name.parse::<Ranker>().unwrap_err().to_string();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}

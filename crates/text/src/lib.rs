//! Source code as text: lines, tokens, edit distances, and what is known of each language.
//!
//! - [`lines`]: lines as Python counts them, which is how benchmarks name the places of holes.
//! - [`tokenize`]: the tokenizer `p50k_base`, words, and any model's `tokenizer.json` (feature `tokenizers`).
//! - [`distance`]: edit distances, as the metrics of the field compute them.
//! - [`language`]: a file for each language: its grammar, comment marks, imports and names; every parse has a bound.
//! - [`visible`]: texts of strangers for a terminal.
//! - [`mod@message`]: sentences for the user, in which settings and commands are values.
//! - [`counts`]: numbers and their nouns.
//! - [`names`]: enumerations that are read and written by name, and what a misspelled name was meant to be.
//! - [`reserved`]: a name of a field that no JSON of others may have.
//!
//! ```
//! use repoformer_text::language::Language;
//! use repoformer_text::lines::Lines;
//! use repoformer_text::names::did_you_mean;
//! use repoformer_text::tokenize::P50k;
//!
//! let lines = Lines::new("def f(x):\n    return x\n");
//! assert_eq!(lines.count(), 2);
//! assert_eq!(P50k.count(lines.line(1)), 3);
//! assert_eq!("python".parse(), Ok(Language::Python));
//! assert!(did_you_mean("pyhton", ["python", "java"]).is_some());
//! ```

// One module may: `language::stack_nodes` counts the memory of a library in C.
#![deny(unsafe_code)]

pub mod counts;
pub mod distance;
pub mod language;
pub mod lines;
pub mod message;
pub mod names;
pub mod reserved;
pub mod tokenize;
pub mod visible;

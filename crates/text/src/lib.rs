//! Source code as text: lines, tokens, edit distances, and data about each language.
//!
//! - [`lines`]: lines as Python counts them, which is how benchmarks specify the positions of holes.
//! - [`tokenize`]: the tokenizer `p50k_base`, words, and any model's `tokenizer.json` (feature `tokenizers`).
//! - [`distance`]: edit distances, as the metrics of the field compute them.
//! - [`language`]: one file per language with its grammar, comment marks, imports and names; every parse is limited in time and
//!   memory.
//! - [`visible`]: untrusted text made safe for a terminal.
//! - [`mod@message`]: messages for the user, in which settings and commands are values.
//! - [`counts`]: numbers and their nouns.
//! - [`names`]: enumerations that are read and written by name, with suggestions for misspelled names.
//! - [`reserved`]: a field name that is refused in JSON from outside.
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

// Exception: `language::stack_nodes` counts the memory of a C library.
#![deny(unsafe_code)]

pub mod counts;
pub mod distance;
pub mod language;
pub mod lines;
pub mod message;
pub mod names;
pub mod reserved;
pub mod shell;
pub mod tokenize;
pub mod visible;

//! Completions for editors, with selective retrieval from the repository as it is edited.
//!
//! [`LiveRepository`] is a repository that is being edited: it makes the prompt for any cursor in it, as the stages would make it
//! of the files as they are now.
//!
//! ```
//! // Editors name files by URLs.
//! assert_eq!(repoformer_serve::path_of_url("file:///a%20b/c.py"), "/a b/c.py");
//! ```

#![forbid(unsafe_code)]

mod live;

pub use live::{
    Changed, Cursor, CursorScratch, LiveRepository, LiveRetrieval, Located, Place, path_of_url,
};

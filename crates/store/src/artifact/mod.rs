//! Typed artifacts with a readable header, written atomically by the stages of the pipeline.

mod columns;
mod header;
mod output;
mod payload;
mod replace;
mod store;
mod turn;

pub use columns::{Column, Columns, Number, Piece};
pub use header::digest_parts;
pub use header::{ColumnHeader, Difference, Header, HeaderVersion, Identity, LineTotals};
pub use output::OutputFile;
pub use payload::Payload;
pub use payload::check_offsets;
pub(crate) use replace::Replacement;
pub use replace::{TemporaryFolder, create_folder, folder_of, remove_abandoned};
pub use replace::{is_held, is_temporary, write_file, write_file_with};
pub use store::{
    ArtifactState, LineSink, digest, header_path, is_artifact, jsonl_header, open, parameters,
    read, read_header, read_jsonl, read_jsonl_header, state, state_jsonl, write, write_lines,
};
pub use store::{for_each_piece, whole_lines};
pub use turn::Turn;

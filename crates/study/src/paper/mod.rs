//! Tables and figures of the Repoformer paper, computed from a run's results, with the paper's numbers next to them.

mod facts;
mod figure;
pub mod names;
mod panel;
mod sizes;
mod table;
mod tasks;
mod walk;

use anyhow::Result;
pub use figure::{Figure, FigureNumbers};
pub use names::SIZES;
pub use panel::Panel;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
pub use sizes::{Sizes, sizes};
pub use table::{FilledTable, MeasuredRow, PaperTable};
pub use tasks::{Tasks, tasks_of};
pub use walk::{TwoRequests, walk};

use crate::fail;
use crate::settings::{DECLARED, SettingValue, Settings};

/// Table or figure that a run produces.
#[derive(Debug)]
pub enum PaperResult {
    /// Table.
    Table(PaperTable),
    /// Figure.
    Figure(Figure),
    /// Table of the benchmarks' sizes, for which nothing is completed.
    Sizes,
}

impl PaperResult {
    /// Returns true if it shows two requests, and no numbers.
    pub fn is_walk(&self) -> bool {
        matches!(self, Self::Figure(figure) if figure.is_walk())
    }

    /// Returns the table or figure that `--paper` names, if it is given.
    ///
    /// # Errors
    /// Its name is unknown, or other settings contradict it.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let beside = &settings.beside[..];
        let of_papers: [&dyn SettingValue; 2] = [&settings.paper_model, &settings.paper_dataset];
        let chosen = of_papers.into_iter().find(|entry| entry.is_chosen());
        let Some(name) = settings.paper.as_deref() else {
            if let Some(entry) = chosen {
                return fail(
                    message![entry.setting(), " works only with tables and figures of the paper"],
                    message!["add ", &DECLARED.paper, " table-2, or leave it out"],
                );
            }
            return match beside {
                [] => Ok(None),
                _ => fail(
                    message![&DECLARED.beside, " works only with figures of the paper"],
                    message![
                        "add ",
                        &DECLARED.paper,
                        " figure-6, or run a ",
                        UserChoice::Comparison,
                        " of two models"
                    ],
                ),
            };
        };
        if let Some(figure) = Figure::find(name)? {
            return figure.check(settings).map(|figure| Some(Self::Figure(figure)));
        }
        if !beside.is_empty() {
            return fail(
                message![
                    &DECLARED.beside,
                    format!(" works only with figures, and {name} is a table")
                ],
                "run the table once with each model",
            );
        }
        if settings.ranker.len() > 1 || settings.right_context.len() > 1 {
            return fail(
                format!(
                    "{name} has one row per model and policy, but several rankers or right contexts are set"
                ),
                "choose one for a table; figures 7 and 8 compare several",
            );
        }
        if name == SIZES {
            if settings.paper_model.is_some() {
                return fail(
                    message![
                        &DECLARED.paper_model,
                        format!(" is not used by {name}, which compares no models")
                    ],
                    "leave it out",
                );
            }
            return Ok(Some(Self::Sizes));
        }
        let table = PaperTable::open(name, settings.paper_model.as_deref())?;
        table.check_retrieval(settings)?;
        Ok(Some(Self::Table(table)))
    }
}

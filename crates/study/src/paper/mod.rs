//! Tables and figures of the Repoformer paper, made of a run's results, with the paper's numbers beside them.

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
pub use sizes::{Sizes, sizes};
pub use table::{FilledTable, Measured, PaperTable};
pub use tasks::{Tasks, tasks_of};
pub use walk::{TwoRequests, walk};

use crate::fail;
use crate::settings::{SettingValue, Settings};

/// A table or a figure that a run is asked for.
#[derive(Debug)]
pub enum PaperResult {
    /// A table.
    Table(PaperTable),
    /// A figure.
    Figure(Figure),
}

impl PaperResult {
    /// Whether it shows two requests, and no numbers.
    pub fn is_walk(&self) -> bool {
        matches!(self, Self::Figure(figure) if figure.is_walk())
    }

    /// Table or figure that `--paper` names, if it is given.
    ///
    /// # Errors
    /// Its name is unknown, or other settings contradict it.
    pub fn chosen(settings: &Settings) -> Result<Option<Self>> {
        let beside = &settings.beside[..];
        let of_papers: [&dyn SettingValue; 2] = [&settings.paper_model, &settings.paper_dataset];
        let chosen = of_papers.into_iter().find(|entry| entry.is_chosen());
        let Some(name) = settings.paper.as_deref() else {
            if let Some(entry) = chosen {
                return fail(
                    format!("--{} is for tables and figures of the paper", entry.key()),
                    "add --paper table-2, or leave it out",
                );
            }
            return match beside {
                [] => Ok(None),
                _ => fail(
                    "--beside is for figures of the paper",
                    "add --paper figure-6, or compare two models with `repoformer compare`",
                ),
            };
        };
        if let Some(figure) = Figure::of(name)? {
            return figure.checked(settings).map(|figure| Some(Self::Figure(figure)));
        }
        if !beside.is_empty() {
            return fail(
                format!("--beside is for figures, and {name} is a table"),
                "run the table once with each model",
            );
        }
        if settings.ranker.len() > 1 || settings.right_context.len() > 1 {
            return fail(
                format!(
                    "{name} has one row for a model and policy, and several rankers or right contexts were asked for"
                ),
                "choose one for a table; figures 7 and 8 compare several",
            );
        }
        if name == SIZES {
            if settings.paper_model.is_some() {
                return fail(
                    format!("--paper-model is not used by {name}, which compares no models"),
                    "leave it out",
                );
            }
            return Ok(None);
        }
        let table = PaperTable::open(name, settings.paper_model.as_deref())?;
        table.check_retrieval(settings)?;
        Ok(Some(Self::Table(table)))
    }
}

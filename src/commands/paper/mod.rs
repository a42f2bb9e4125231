//! Tables and figures of the Repoformer paper, made of a run's results, with the paper's numbers beside them.

mod facts;
mod figure;
pub(crate) mod names;
mod panel;
mod sizes;
mod table;
mod tasks;
mod walk;

pub(super) use figure::Figure;
pub(super) use names::SIZES;
pub(super) use panel::Panel;
pub(super) use sizes::sizes;
pub(super) use table::{Measured, PaperTable};
pub(super) use tasks::{Tasks, tasks_of};
pub(super) use walk::walk;

use anyhow::Result;

use crate::output::fail;
use crate::settings::Settings;

/// A table or a figure that a run is asked for.
pub(super) enum Paper {
    Table(PaperTable),
    Figure(Figure),
}

impl Paper {
    /// Table or figure that `--paper` names, if it is given.
    pub(super) fn of(settings: &Settings) -> Result<Option<Self>> {
        let beside = settings.list("beside");
        let is_given = |key: &&&str| settings.is_chosen(key);
        let chosen = ["paper-model", "paper-dataset"].iter().find(is_given);
        let Some(name) = settings.text("paper") else {
            if let Some(key) = chosen {
                return fail(
                    format!("--{key} is for tables and figures of the paper"),
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
        if settings.list("ranker").len() > 1 || settings.list("right-context").len() > 1 {
            return fail(
                format!(
                    "{name} has one row for a model and policy, and several rankers or right contexts were asked for"
                ),
                "choose one for a table; figures 7 and 8 compare several",
            );
        }
        if name == SIZES {
            if settings.text("paper-model").is_some() {
                return fail(
                    format!("--paper-model is not used by {name}, which compares no models"),
                    "leave it out",
                );
            }
            return Ok(None);
        }
        let table = PaperTable::open(name, settings.text("paper-model"))?;
        table.check_retrieval(settings)?;
        Ok(Some(Self::Table(table)))
    }
}

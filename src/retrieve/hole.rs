//! Which windows a query may see: never the hole it is to fill.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::repository::window::{Place, RepoWindows};
use crate::retrieve::query::QueryWindow;
use crate::task::Task;

/// How far a hole is kept out of its own prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HoleGuard {
    /// No line at or after the hole, and no line that the prompt already shows, is ever used: places are judged one
    /// by one, only the allowed ones are named and extended, extension stops at the prompt's start, and another
    /// name (a link) of the hole's file is the hole's file. A copy with the same content is another file: duplicated
    /// code is part of what retrieval finds.
    #[default]
    Strict,
    /// As the reference program: a window with one allowed place is used with all its places, and extended from the
    /// first, allowed or not — which prints the hole itself in a few tasks of a hundred.
    Reference,
}

impl FromStr for HoleGuard {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "strict" => Ok(Self::Strict),
            "reference" => Ok(Self::Reference),
            other => Err(format!("'{other}' is neither strict nor reference")),
        }
    }
}

impl std::fmt::Display for HoleGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Reference => "reference",
        })
    }
}

/// A task's hole, as the windows of its repository see it.
#[derive(Debug, Clone, Copy)]
pub struct Hole<'a> {
    windows: &'a RepoWindows,
    guard: HoleGuard,
    /// The hole's file; `None` where the repository does not hold it.
    file: Option<u32>,
    /// First line that the prompt shows.
    context_start: u32,
}

impl<'a> Hole<'a> {
    /// The hole of a task.
    pub fn of(task: &Task, windows: &'a RepoWindows, guard: HoleGuard) -> Self {
        Self::new(&task.path, task.context_start, windows, guard)
    }

    /// The hole that a query was cut for.
    pub fn of_query(query: &QueryWindow, windows: &'a RepoWindows, guard: HoleGuard) -> Self {
        Self::new(&query.path, query.context_start as usize, windows, guard)
    }

    fn new(path: &str, context_start: usize, windows: &'a RepoWindows, guard: HoleGuard) -> Self {
        let file = windows.file_index(path).map(|index| index as u32);
        let context_start = context_start as u32;
        Self {
            windows,
            guard,
            file,
            context_start,
        }
    }

    /// Whether a place lies in the hole's own file.
    pub fn is_own_file(&self, place: Place) -> bool {
        let Some(file) = self.file else { return false };
        match self.guard {
            HoleGuard::Reference => place.file == file,
            HoleGuard::Strict => {
                self.windows.files[place.file as usize].same_as
                    == self.windows.files[file as usize].same_as
            }
        }
    }

    /// Whether a place is in another file, or ends where the prompt starts or before.
    pub fn allows_place(&self, place: Place) -> bool {
        place.end <= self.context_start || !self.is_own_file(place)
    }

    /// Whether a window may be retrieved: one of its places is allowed.
    pub fn allows(&self, window: u32) -> bool {
        self.windows
            .places(window as usize)
            .any(|place| self.allows_place(place))
    }

    /// The places of a window that a prompt names, the first of which it extends.
    pub fn named_places(&self, window: u32) -> Vec<Place> {
        let places = self.windows.places(window as usize);
        match self.guard {
            HoleGuard::Reference => places.collect(),
            HoleGuard::Strict => places.filter(|place| self.allows_place(*place)).collect(),
        }
    }

    /// The line of a place's file at which extension stops.
    pub fn last_line(&self, place: Place) -> u32 {
        let count = self.windows.files[place.file as usize].lines.count() as u32;
        if self.guard == HoleGuard::Strict && self.is_own_file(place) {
            count.min(self.context_start)
        } else {
            count
        }
    }
}

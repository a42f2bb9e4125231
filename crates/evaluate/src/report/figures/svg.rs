//! SVG writer for two media: inline in the page, whose style sheet sets the colours, and a file with its own colours.

use std::fmt::Write;

use super::super::text::escape;

/// Name and SVG of a figure; the name is also the file's name.
pub(crate) type Figure = (String, String);

/// Medium of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// Inline in the page: classes instead of colours, and marks that filter the list of tasks.
    Page,
    /// A file: white background, its own colours and font, no classes.
    File,
}

/// Meaning of a colour. The palette is Okabe and Ito's, which is safe for colour-blind readers, plus three more colours for
/// lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    /// Text and baselines.
    Ink,
    /// Secondary text.
    Muted,
    /// Grid lines and frames.
    Rule,
    /// The background.
    Paper,
    /// Better than the baseline.
    Better,
    /// Worse than the baseline.
    Worse,
    /// Equal to the baseline.
    Same,
    /// One of several systems; colours repeat after [`Paint::SERIES`].
    Series(usize),
}

impl Paint {
    const COLOURS: [&str; 10] = [
        "#0072b2", "#d55e00", "#00805c", "#b0508a", "#8a6d00", "#3a8fc4", "#55606b", "#6a51c7",
        "#a33b3b", "#5c8a1e",
    ];

    /// Number of distinct colours of systems.
    pub(super) const SERIES: usize = Self::COLOURS.len();

    fn class(self) -> String {
        match self {
            Self::Ink => "ink".into(),
            Self::Muted => "muted".into(),
            Self::Rule => "rule".into(),
            Self::Paper => "paper".into(),
            Self::Better => "better".into(),
            Self::Worse => "worse".into(),
            Self::Same => "same".into(),
            Self::Series(number) => format!("series-{}", number % Self::SERIES),
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Ink => "#1b1f24",
            Self::Muted => "#59616b",
            Self::Rule => "#d9dde2",
            Self::Paper => "#ffffff",
            Self::Better => "#0072b2",
            Self::Worse => "#c65300",
            Self::Same => "#a9b0b8",
            Self::Series(number) => Self::COLOURS[number % Self::SERIES],
        }
    }
}

/// Position of a text relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Size and weight of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// Names and headings.
    Strong,
    /// Values and names.
    Plain,
    /// Ticks, units, counts.
    Small,
}

impl Type {
    fn size(self) -> f64 {
        match self {
            Self::Strong | Self::Plain => 12.0,
            Self::Small => 10.5,
        }
    }
}

/// Type and colour of a text.
pub(super) type Style = (Type, Paint);
/// Names.
pub(super) const STRONG: Style = (Type::Strong, Paint::Ink);
/// Values.
pub(super) const PLAIN: Style = (Type::Plain, Paint::Ink);
/// Small values.
pub(super) const SMALL: Style = (Type::Small, Paint::Ink);
/// Ticks, units, counts.
pub(super) const FAINT: Style = (Type::Small, Paint::Muted);

/// Figure under construction; lengths are in pixels at its natural size.
#[derive(Debug)]
pub(super) struct Svg {
    medium: Medium,
    height: f64,
    body: String,
}

impl Svg {
    /// Width of every figure: half of a wide page, or about the width of a phone.
    pub(super) const WIDTH: f64 = 480.0;
    /// Number of forms of marks.
    pub(super) const FORMS: usize = 6;
    /// Margin around a figure in a file.
    const MARGIN: f64 = 10.0;

    pub(super) fn new(medium: Medium, height: f64) -> Self {
        Self { medium, height, body: String::new() }
    }

    /// Returns the finished figure. Screen readers read `title` and `description`.
    pub(super) fn finish(self, name: &str, title: &str, description: &str) -> Figure {
        let (width, height) = (number(Self::WIDTH), number(self.height));
        let (title, description) = (escape(title), escape(description));
        let body = self.body;
        let svg = match self.medium {
            Medium::Page => format!(
                "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"group\" aria-label=\"{title}. {description}\" \
                 data-figure=\"{}\">\n{body}</svg>\n",
                escape(name),
            ),
            Medium::File => {
                let around = |length: f64| number(length + 2.0 * Self::MARGIN);
                let (wide, high) = (around(Self::WIDTH), around(self.height));
                let margin = number(Self::MARGIN);
                format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                     <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" \
                     viewBox=\"-{margin} -{margin} {wide} {high}\" role=\"img\" aria-labelledby=\"title desc\" \
                     font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n\
                     <title id=\"title\">{title}</title>\n<desc id=\"desc\">{description}</desc>\n\
                     <rect x=\"-{margin}\" y=\"-{margin}\" width=\"{wide}\" height=\"{high}\" fill=\"#ffffff\"/>\n\
                     {body}</svg>\n"
                )
            }
        };
        (name.to_owned(), svg)
    }

    /// Draws marks that belong together. `title` is shown on hover; in the page, `pick` (part of the address,
    /// `bucket=3&system=1`) filters the list of tasks.
    pub(super) fn group(&mut self, title: &str, pick: Option<&str>, draw: impl FnOnce(&mut Self)) {
        let title = escape(title);
        let _ = match (self.medium, pick) {
            (Medium::Page, Some(pick)) => write!(
                self.body,
                "<g class=\"pick\" tabindex=\"0\" role=\"button\" aria-label=\"{title}: show these tasks\" data-pick=\"{}\">",
                escape(pick),
            ),
            _ => write!(self.body, "<g>"),
        };
        let _ = writeln!(self.body, "<title>{title}</title>");
        draw(self);
        self.body.push_str("</g>\n");
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, paint: Paint) {
        let (x, y) = (number(x), number(y));
        let (width, height) = (number(width.max(0.0)), number(height.max(0.0)));
        let paint = self.fill(paint);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{paint}/>"
        );
    }

    /// Draws an invisible area that reacts to the pointer.
    pub(super) fn area(&mut self, x: f64, y: f64, width: f64, height: f64) {
        if self.medium == Medium::Page {
            let (x, y, width, height) = (number(x), number(y), number(width), number(height));
            let _ = writeln!(
                self.body,
                "<rect class=\"area\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
            );
        }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, paint: Paint) {
        let (stroke, path, width) = (self.stroke(paint), path(&[from, to]), number(width));
        let _ = writeln!(
            self.body,
            "<path d=\"{path}\" fill=\"none\" stroke-width=\"{width}\"{stroke}/>"
        );
    }

    /// Draws a line through several points; the baseline is dashed.
    pub(super) fn path(&mut self, points: &[(f64, f64)], width: f64, dashed: bool, paint: Paint) {
        let (stroke, path) = (self.stroke(paint), path(points));
        let dashes = if dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<path d=\"{path}\" fill=\"none\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dashes}{stroke}/>",
            number(width),
        );
    }

    /// Draws the area between two lines in a faint colour.
    pub(super) fn band(&mut self, points: &[(f64, f64)], paint: Paint) {
        let (fill, path) = (self.fill(paint), path(points));
        let _ = writeln!(self.body, "<path d=\"{path}Z\" fill-opacity=\"0.11\"{fill}/>");
    }

    /// Draws a point of a system: forms distinguish systems if colours do not.
    pub(super) fn mark(&mut self, x: f64, y: f64, form: usize, paint: Paint) {
        let fill = self.fill(paint);
        let points: &[(f64, f64)] = match form % Self::FORMS {
            0 => {
                let (x, y) = (number(x), number(y));
                let _ = writeln!(self.body, "<circle cx=\"{x}\" cy=\"{y}\" r=\"4\"{fill}/>");
                return;
            }
            1 => &[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
            2 => &[(0.0, -4.8), (4.4, 3.2), (-4.4, 3.2)],
            3 => &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)],
            4 => &[(0.0, 4.8), (4.4, -3.2), (-4.4, -3.2)],
            // A cross.
            _ => &[
                (-1.4, -4.6),
                (1.4, -4.6),
                (1.4, -1.4),
                (4.6, -1.4),
                (4.6, 1.4),
                (1.4, 1.4),
                (1.4, 4.6),
                (-1.4, 4.6),
                (-1.4, 1.4),
                (-4.6, 1.4),
                (-4.6, -1.4),
                (-1.4, -1.4),
            ],
        };
        let moved: Vec<(f64, f64)> = points.iter().map(|p| (x + p.0, y + p.1)).collect();
        let _ = writeln!(self.body, "<path d=\"{}Z\"{fill}/>", path(&moved));
    }

    /// Draws a ring for the baseline next to a system's point.
    pub(super) fn ring(&mut self, x: f64, y: f64, paint: Paint) {
        let (fill, stroke) = (self.fill(Paint::Paper), self.stroke(paint));
        // In the page, both are classes, which share one attribute.
        let both = format!("{fill}{stroke}").replace("\" class=\"", " ");
        let (x, y) = (number(x), number(y));
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"3.6\" stroke-width=\"1.6\"{both}/>"
        );
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, style: Style, text: &str) {
        let (kind, paint) = style;
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if kind == Type::Strong { " font-weight=\"600\"" } else { "" };
        let (x, y, size) = (number(at.0), number(at.1), number(kind.size()));
        let (fill, text) = (self.fill(paint), escape(text));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}{weight}{fill}>{text}</text>"
        );
    }

    fn fill(&self, paint: Paint) -> String {
        match self.medium {
            Medium::Page => format!(" class=\"fill-{}\"", paint.class()),
            Medium::File => format!(" fill=\"{}\"", paint.colour()),
        }
    }

    fn stroke(&self, paint: Paint) -> String {
        match self.medium {
            Medium::Page => format!(" class=\"stroke-{}\"", paint.class()),
            Medium::File => format!(" stroke=\"{}\"", paint.colour()),
        }
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let sign = if at == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{sign}{} {}", number(*x), number(*y));
    }
    path
}

/// Formats a length with at most two decimals, the same on every machine.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// Estimates the width of a text in pixels, independent of fonts.
pub(super) fn width(text: &str, kind: Type) -> f64 {
    let widths = text.chars().map(|c| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | '\'' | '|' | ' ' | '-' => 0.34,
        'm' | 'w' | 'M' | 'W' => 0.86,
        c if c.is_ascii_uppercase() => 0.68,
        c if (c as u32) < 0x1100 => 0.56,
        _ => 1.0,
    });
    widths.sum::<f64>() * kind.size()
}

/// Cuts a text to a width; a cut text ends with `…`.
pub(super) fn fit(text: &str, room: f64, kind: Type) -> String {
    if width(text, kind) <= room {
        return text.into();
    }
    let mut cut = String::new();
    for c in text.chars() {
        cut.push(c);
        if width(&cut, kind) + 0.9 * kind.size() > room {
            cut.pop();
            break;
        }
    }
    cut.push('…');
    cut
}

/// Returns about `count` round numbers from `low` to `high`, inclusive.
pub(super) fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return vec![low];
    }
    let power = 10_f64.powi(libm::log10(rough).floor() as i32);
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough * 0.999);
    let step = factor.unwrap_or(10.0) * power;
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|at| at as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([number(1.0), number(0.256), number(-0.001)], ["1", "0.26", "0"]);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(27.5, 41.0, 3), [30.0, 35.0, 40.0]);
        assert_eq!(ticks(3.0, 3.0, 4), [3.0]);
    }

    #[test]
    fn a_text_is_cut_to_its_room() {
        assert_eq!(fit("rg1", 100.0, Type::Plain), "rg1");
        let cut = fit(&"name".repeat(30), 100.0, Type::Plain);
        assert!(cut.ends_with('…') && width(&cut, Type::Plain) <= 101.0, "{cut}");
    }

    #[test]
    fn a_file_has_colours_and_a_page_classes() {
        let drawn = |medium| {
            let mut svg = Svg::new(medium, 10.0);
            svg.group("3 < 4", Some("bucket=1"), |svg| {
                svg.rect(0.0, 0.0, 1.0, 1.0, Paint::Better);
                svg.ring(0.0, 0.0, Paint::Ink);
            });
            svg.finish("name", "title", "what").1
        };
        let (page, file) = (drawn(Medium::Page), drawn(Medium::File));
        assert!(page.contains("data-pick=\"bucket=1\"") && page.contains("class=\"fill-better\""));
        assert!(page.contains("class=\"fill-paper stroke-ink\"") && !page.contains('#'));
        assert!(file.contains("<title>3 &lt; 4</title>") && file.contains("fill=\"#0072b2\""));
        assert!(!file.contains("class=") && !file.contains("data-"));
    }
}

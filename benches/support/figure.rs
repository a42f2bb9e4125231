//! Figure of the growth of search: microseconds per query by number of windows, both on logarithmic axes.

use std::fmt::Write;

/// Line of the figure: its name, its colour, and microseconds at each size.
pub struct Line {
    pub name: &'static str,
    pub colour: &'static str,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 500.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 350.0;

/// Returns the figure as an SVG document.
pub fn svg(lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let bounds = |value: fn(&(f64, f64)) -> f64| {
        let logs = || points().map(|point| libm::log10(value(point)));
        (logs().fold(f64::MAX, f64::min).floor(), logs().fold(f64::MIN, f64::max).ceil())
    };
    let ((x0, x1), (y0, y1)) = (bounds(|point| point.0), bounds(|point| point.1));
    let x = |n: f64| LEFT + (libm::log10(n) - x0) / (x1 - x0) * (RIGHT - LEFT);
    let y = |n: f64| BOTTOM - (libm::log10(n) - y0) / (y1 - y0) * (BOTTOM - TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut add = |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").expect("memory");
    for decade in x0 as i32..=x1 as i32 {
        let (n, at) = (10_f64.powi(decade), x(10_f64.powi(decade)));
        add(format_args!(
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{BOTTOM}\" stroke=\"#ddd\"/>"
        ));
        add(format_args!(
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{n}</text>",
            BOTTOM + 18.0
        ));
    }
    for decade in y0 as i32..=y1 as i32 {
        let (n, at) = (10_f64.powi(decade), y(10_f64.powi(decade)));
        add(format_args!(
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>"
        ));
        add(format_args!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{n}</text>",
            LEFT - 8.0,
            at + 4.0
        ));
    }
    add(format_args!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">windows</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 40.0
    ));
    add(format_args!(
        "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">µs a query</text>",
        (TOP + BOTTOM) / 2.0
    ));
    for Line { name, colour, points } in lines {
        let path: Vec<String> =
            points.iter().map(|(n, t)| format!("{:.1},{:.1}", x(*n), y(*t))).collect();
        add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        ));
        for (n, t) in points {
            add(format_args!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
                x(*n),
                y(*t)
            ));
        }
        if let Some((n, t)) = points.last() {
            add(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
                x(*n) + 10.0,
                y(*t) + 4.0
            ));
        }
    }
    out + "</svg>\n"
}

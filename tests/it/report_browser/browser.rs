//! A real browser without a window, driven over its DevTools protocol: messages of JSON that end in a zero byte, through
//! two named pipes that the browser has as its descriptors 3 and 4.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Chromium with one page open, and everything that it said on its own.
pub(crate) struct Browser {
    child: Child,
    sent: File,
    answers: Receiver<Value>,
    session: String,
    last_id: u64,
    /// Events that came while answers were waited for.
    events: Vec<Value>,
    dir: tempfile::TempDir,
}

impl Browser {
    /// Starts Chromium: `$CHROMIUM`, or `chromium` from the path.
    pub(crate) fn start() -> Self {
        let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into());
        let found = Command::new(&chromium).arg("--version").stdin(Stdio::null()).output();
        assert!(
            found.is_ok_and(|output| output.status.success()),
            "{chromium} cannot be run: install Debian's chromium, or name a browser with CHROMIUM"
        );
        let dir = tempfile::tempdir().unwrap();
        let (to, from) = (dir.path().join("to"), dir.path().join("from"));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\"", &chromium])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
            .env("TO", &to)
            // What the browser leaves in its folder for temporary files goes with ours.
            .env("TMPDIR", dir.path())
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // In the order in which the shell opens them: a pipe opens when both ends do.
        let sent = File::options().write(true).open(&to).unwrap();
        let received = File::open(&from).unwrap();
        let mut browser = Self {
            child,
            sent,
            answers: listen(received),
            session: String::new(),
            last_id: 0,
            events: Vec::new(),
            dir,
        };
        browser.open_tab();
        browser
    }

    fn open_tab(&mut self) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = target["targetId"].clone();
        let attached =
            self.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        self.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Calls a method and gives its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.sent.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.answers.recv_timeout(PATIENCE);
            let mut answer = answer.unwrap_or_else(|e| panic!("{method}: no answer: {e}"));
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Writes a page to disk and opens it, at a place (`#task=…`); comes back when its script is through.
    pub(crate) fn open(&mut self, page: &str, place: &str) {
        let path = self.dir.path().join("report.html");
        fs::write(&path, page).unwrap();
        self.navigate(&path, place);
        self.until("document.documentElement?.dataset.ready === 'true'");
    }

    /// Writes any other file to disk and opens it.
    pub(crate) fn show(&mut self, name: &str, content: &str) {
        let path = self.dir.path().join(format!("report-{name}"));
        fs::write(&path, content).unwrap();
        self.navigate(&path, "");
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'");
    }

    /// Opens a page of a server.
    #[cfg(feature = "serve")]
    pub(crate) fn visit(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": url}));
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'");
    }

    fn navigate(&mut self, path: &Path, place: &str) {
        // Another address in between: one that differs in its fragment alone would not load the page anew.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.until("location.href === 'about:blank'");
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}{place}", path.display())}));
    }

    /// The value of an expression, a promise's when it is kept.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", params);
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        answer["result"]["value"].take()
    }

    pub(crate) fn text(&mut self, selector: &str) -> String {
        let shown = self.eval(&format!("document.querySelector({selector:?})?.innerText ?? null"));
        let shown = shown.as_str().unwrap_or_else(|| panic!("no {selector} in the page"));
        shown.to_owned()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        let value = self.eval(expression);
        value.as_f64().unwrap_or_else(|| panic!("{expression}: {value} is no number"))
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.eval(expression) != true {
            if begin.elapsed() > PATIENCE {
                self.assert_quiet();
                panic!("still not true: {expression}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses and lets go a key: a letter or sign, or a name as `Enter`.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            "Tab" => 9,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            _ if key.chars().count() == 1 => key,
            _ => "",
        };
        let down =
            json!({"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", down);
        let up = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", up);
    }

    /// Clicks the middle of an element, as a mouse does.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const found = document.querySelector({selector:?}); found.scrollIntoView({{block: 'nearest'}}); \
             const {{x, y, width, height}} = found.getBoundingClientRect(); return [x + width / 2, y + height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// The window's size, and whether the reader likes it dark.
    pub(crate) fn look(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// As it would be printed.
    pub(crate) fn look_printed(&mut self, width: u32, height: u32) {
        self.look(width, height, false);
        self.call("Emulation.setEmulatedMedia", json!({"media": "print"}));
    }

    /// Keeps what is seen as a picture, where `$REPORT_SCREENSHOTS` names a folder; `whole` beyond the window's end.
    pub(crate) fn screenshot(&mut self, name: &str, whole: bool) {
        let Some(folder) = std::env::var_os("REPORT_SCREENSHOTS").map(PathBuf::from) else {
            return;
        };
        let settled = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true), 200))))";
        self.eval(settled);
        let shot = self.call(
            "Page.captureScreenshot",
            json!({"captureBeyondViewport": whole, "format": "png"}),
        );
        fs::create_dir_all(&folder).unwrap();
        let bytes = from_base64(shot["data"].as_str().unwrap());
        fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Number of things that the page's policy has stopped since the page was opened.
    pub(crate) fn refusals(&mut self) -> usize {
        self.eval("1"); // what the page has said by now has come before the answer
        let said = self.events.iter().map(|event| &event["params"]["entry"]);
        said.filter(|entry| entry["source"] == "security" && entry["level"] == "error").count()
    }

    /// Nothing was complained of, and nothing was asked of any network, since the page was opened.
    pub(crate) fn assert_quiet(&mut self) {
        self.eval("1"); // what the page has said by now has come before the answer
        for event in &self.events {
            let (method, params) = (event["method"].as_str().unwrap_or(""), &event["params"]);
            let asked = params["request"]["url"].as_str().unwrap_or("");
            match method {
                "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => {
                    panic!("the page complains: {params}")
                }
                "Network.requestWillBeSent" => {
                    let own = asked.starts_with("file://") && asked.contains("/report");
                    assert!(own || asked.starts_with("data:"), "the page asks for {asked}");
                }
                "Page.javascriptDialogOpening" => panic!("the page opened a dialog: {params}"),
                _ => {}
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
];

/// The browser's messages, as they come.
fn listen(received: File) -> Receiver<Value> {
    let (sender, answers) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(received).split(0) {
            let Ok(message) = message else { return };
            let Ok(message) = serde_json::from_slice(&message) else {
                continue;
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    answers
}

fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for sign in text.bytes() {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

//! A registry with what the test puts there, for npm and for pip.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Shelf {
    pub url: String,
    pages: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Shelf {
    pub fn new() -> Shelf {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let shelf = Shelf { url, pages: Arc::default(), asked: Arc::default() };
        let (pages, asked) = (shelf.pages.clone(), shelf.asked.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = [0; 16 << 10];
                let count = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..count]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
                asked.lock().unwrap_or_else(PoisonError::into_inner).push(head);
                let page = pages.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
                let status = if page.is_some() { "200 OK" } else { "404 Not Found" };
                let kind = if path.ends_with('/') { "text/html" } else { "application/octet-stream" };
                let body = page.unwrap_or_default();
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.write_all(&[answer.as_bytes(), &body].concat());
            }
        });
        shelf
    }

    /// The heads of all requests.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, path: &str, bytes: Vec<u8>) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), bytes);
    }

    /// A package of npm with these files.
    pub fn npm(&self, at: &Path, described: &Value, files: &[(&str, &str)]) {
        let name = described["name"].as_str().expect("a name");
        let version = described["version"].as_str().expect("a version");
        let text = described.to_string();
        let archive = archive(at, "package", &[files, &[("package.json", text.as_str())]].concat());
        self.put(&format!("/{name}.tgz"), archive);
        let mut whole = described.clone();
        whole["dist"] = json!({"tarball": format!("{}{name}.tgz", self.url)});
        let page = json!({"name": name, "dist-tags": {"latest": version}, "versions": {version: whole}});
        self.put(&format!("/{name}"), page.to_string().into_bytes());
    }

    /// A source package of Python with these files.
    pub fn sdist(&self, at: &Path, name: &str, files: &[(&str, &str)]) {
        let file = format!("{name}-1.0.tar.gz");
        self.put(&format!("/files/{file}"), archive(at, &format!("{name}-1.0"), files));
        self.put(&format!("/simple/{name}/"), format!("<a href=\"/files/{file}\">{file}</a>").into_bytes());
    }

    /// A built package of Python with these files.
    pub fn wheel(&self, at: &Path, name: &str, files: &[(&str, &str)]) {
        let source = at.join(format!("{name}-wheel"));
        let info = format!("{name}-1.0.dist-info");
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n");
        let kind = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        let names = [format!("{info}/METADATA"), format!("{info}/WHEEL"), format!("{info}/RECORD")];
        let record: String = files
            .iter()
            .map(|(path, _)| *path)
            .chain(names.iter().map(String::as_str))
            .fold(String::new(), |record, path| record + path + ",,\n");
        let own = [(names[0].as_str(), metadata.as_str()), (&names[1], kind), (&names[2], &record)];
        write(&source, &[files, &own].concat());
        let file = format!("{name}-1.0-py3-none-any.whl");
        let made =
            Command::new("python3").args(["-m", "zipfile", "-c", "../made.whl", "."]).current_dir(&source).status();
        assert!(made.is_ok_and(|made| made.success()));
        self.put(&format!("/files/{file}"), std::fs::read(at.join("made.whl")).expect("the wheel"));
        self.put(&format!("/simple/{name}/"), format!("<a href=\"/files/{file}\">{file}</a>").into_bytes());
    }
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

fn archive(at: &Path, name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    write(&at.join(name), files);
    let packed = Command::new("tar").args(["czf", "made.tgz", name]).current_dir(at).status();
    assert!(packed.is_ok_and(|packed| packed.success()));
    std::fs::read(at.join("made.tgz")).expect("the archive")
}

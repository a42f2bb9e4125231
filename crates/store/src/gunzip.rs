//! Reading of gzip as gunzip and Python do it.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Decoder of the members of a gzip file, one after another. It skips zeros between and after members, which tapes and block
/// devices add.
pub(super) struct Gunzip<R> {
    /// Decoder of the current member; `None` after the last.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gunzip<R> {
    /// Decompresses input that begins with a member.
    pub(super) fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let next = self.member.take().map(GzDecoder::into_inner);
            self.member = next.map(next_member).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// Returns the decoder of the next member, if there is one.
fn next_member<R: BufRead>(mut input: R) -> io::Result<Option<GzDecoder<R>>> {
    loop {
        let bytes = input.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        match bytes.get(zeros) {
            None if bytes.is_empty() => return Ok(None),
            None => input.consume(zeros),
            Some(0x1f) => {
                input.consume(zeros);
                return Ok(Some(GzDecoder::new(input)));
            }
            Some(_) => {
                let reason = "bytes that are not gzip follow the compressed text; the file is \
                              damaged, or something was appended to it";
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8], buffered: usize) -> io::Result<String> {
        let mut text = String::new();
        let mut gunzip = Gunzip::new(BufReader::with_capacity(buffered, bytes));
        gunzip.read_to_string(&mut text).map(|_| text)
    }

    /// Compared with Python's `gzip` module (`_GzipReader._read_gzip_header` and `_read_eof`).
    #[test]
    fn zeros_behind_members_are_padding_and_other_bytes_are_named() {
        let (one, two) = (member("one\n"), member("two\n"));
        let (one, two, zeros) = (&one[..], &two[..], &[0; 1000][..]);
        for buffered in [1, 7, 64, 1 << 16] {
            for (parts, text) in [
                (vec![one], "one\n"),
                (vec![one, zeros], "one\n"),
                (vec![one, two], "one\ntwo\n"),
                (vec![one, zeros, two, zeros], "one\ntwo\n"),
            ] {
                assert_eq!(read(&parts.concat(), buffered).unwrap(), text);
            }
            for behind in [&b"junk"[..], b"\0\0junk", b"\n"] {
                let error = read(&[one, behind].concat(), buffered).unwrap_err();
                assert!(error.to_string().contains("not gzip"), "{error}");
            }
            for end in [1, 12, one.len() - 1] {
                assert!(read(&[one, &two[..end]].concat(), buffered).is_err(), "{end}");
            }
        }
    }
}

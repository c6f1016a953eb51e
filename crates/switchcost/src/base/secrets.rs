//! Command lines as they are stored and shown: without the values of what is called a password or
//! the like.

use std::mem;

/// In place of a value.
const MASK: &str = "***";

/// What names of secrets have in them, without their `_` and `-`.
const NAMES: [&str; 10] = [
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "AUTHORIZATION",
];

/// The words of a command, as far as they may be shown; with --anonymous nothing of them.
pub(crate) fn shown(words: &[String], anonymous: bool) -> Vec<String> {
    match anonymous && !words.is_empty() {
        true => vec!["command".to_string()],
        false => masked(words),
    }
}

/// Words with [`MASK`] for the values of `TOKEN=x`, `--password x`, `X-Api-Key: x` and
/// `//user:x@host`, also within a word that is a command itself.
pub(crate) fn masked(words: &[String]) -> Vec<String> {
    let mut is_value = false;
    words.iter().map(|word| masked_word(word, &mut is_value)).collect()
}

/// `is_value`: whether the flag before asks for one; and behind it, whether the last flag in it
/// does.
fn masked_word(word: &str, is_value: &mut bool) -> String {
    let (mut text, mut rest) = (String::new(), word);
    while !rest.is_empty() {
        let (blanks, from) = rest.split_at(rest.len() - rest.trim_start().len());
        let (piece, next) = from.split_at(end_of_piece(from));
        text += blanks;
        rest = next;
        if mem::take(is_value) && !piece.starts_with('-') {
            text += MASK;
            continue;
        }
        *is_value = piece.starts_with('-') && !piece.contains('=') && is_secret(piece);
        let (shown, is_open) = masked_piece(piece);
        text += &shown;
        if is_open {
            // A header's value is all that follows.
            return text + " " + MASK;
        }
    }
    text
}

/// A piece ends at a blank that is in no quotation marks.
fn end_of_piece(text: &str) -> usize {
    let mut quote = None;
    let ends = |c: char| {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        quote.is_none() && c.is_whitespace()
    };
    text.find(ends).unwrap_or(text.len())
}

/// A piece with all values of secrets masked, and whether the last one is still to come.
fn masked_piece(piece: &str) -> (String, bool) {
    let (mut text, mut rest) = (String::new(), piece);
    while let Some(at) = rest.find(['=', ':']) {
        let (name, tail) = rest.split_at(at + 1);
        text += name;
        let user = tail.strip_prefix("//").and_then(|url| url.split_once('@'));
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name = name[..at].trim_end_matches(['"', '\'']);
        let login = user.and_then(|(user, _)| user.split_once(':'));
        if let Some((name, _)) = login.filter(|(name, _)| !name.contains('/')) {
            text += &format!("//{name}:{MASK}");
            rest = &tail[tail.find('@').unwrap_or(tail.len())..];
        } else if is_secret(name.rsplit(|c| !is_part(c)).next().unwrap_or(name)) {
            let value = tail.trim_start_matches(['"', '\'']);
            let (quote, ends) = (&tail[..tail.len() - value.len()], ['"', '\'', '&']);
            let end =
                if quote.is_empty() && !piece.contains('?') { None } else { value.find(ends) };
            if value.is_empty() {
                return (text, at + 1 == rest.len() && rest.ends_with(':'));
            }
            text += &format!("{quote}{MASK}");
            rest = &value[end.unwrap_or(value.len())..];
        } else {
            rest = tail;
        }
    }
    (text + rest, false)
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_uppercase();
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name);
    NAMES.iter().any(|part| plain.contains(part)) || last.eq_ignore_ascii_case("pass")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        masked(&shell_words::split(text).unwrap()).join(" ")
    }

    #[test]
    fn values_of_secrets_are_masked() {
        for (typed, shown) in [
            ("env TOKEN=abc GITHUB_TOKEN=a=b make", "env TOKEN=*** GITHUB_TOKEN=*** make"),
            ("db --password abc -v --db-passwd=x", "db --password *** -v --db-passwd=***"),
            ("db --password -v", "db --password -v"),
            (
                "sh -c 'PASSWORD=\"a b\" API_KEY=x exec db --pass c d'",
                "sh -c PASSWORD=\"***\" API_KEY=*** exec db --pass *** d",
            ),
            ("curl -H 'Authorization: Bearer abc' x", "curl -H Authorization: *** x"),
            (
                "curl 'https://me:abc@host/p?x=1&token=abc&y=2'",
                "curl https://me:***@host/p?x=1&token=***&y=2",
            ),
            ("post '{\"secret\":\"abc\",\"n\":1}'", "post {\"secret\":\"***\",\"n\":1}"),
            ("'MYSQL_PASS=a;b' x", "MYSQL_PASS=*** x"),
        ] {
            assert_eq!(line(typed), shown);
        }
    }

    #[test]
    fn other_words_stay() {
        for typed in [
            "make -j4 CC=gcc all",
            "taskset -c 0,1 chrt -f 10",
            "git clone https://host/a:b@c",
            "compass=1 bypass --passes 3 PWD=/tmp",
            "curl http://localhost:80/x?a=b",
        ] {
            assert_eq!(line(typed), typed);
        }
    }

    #[test]
    fn anonymous_is_nothing_of_it() {
        assert_eq!(shown(&["make".to_string()], true), ["command"]);
        assert_eq!(shown(&[], true), [""; 0]);
    }
}

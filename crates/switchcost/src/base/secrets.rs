//! Command lines as they are stored and shown: without the values of what is called a password or
//! the like. By a list, so as far as one goes: what no name tells is not found (SECURITY.md).

use std::ffi::OsString;
use std::mem;

/// In place of a value.
const MASK: &str = "***";

/// What names of secrets have in them, without their `_` and `-`.
const NAMES: [&str; 15] = [
    "WEBHOOK",
    "JWT",
    "COOKIE",
    "BEARER",
    "OAUTH",
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

/// Last parts of such names, which alone are no part of others: `compass`, `monkey`.
const LAST: [&str; 3] = ["pass", "auth", "key"];

/// A short option of programs that takes a secret.
struct Short {
    programs: &'static [&'static str],
    option: &'static str,
    /// The value may be the next word.
    stands_apart: bool,
}

const SHORT: [Short; 6] = [
    Short {
        programs: &["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"],
        option: "-p",
        stands_apart: false,
    },
    Short { programs: &["sshpass"], option: "-p", stands_apart: true },
    Short { programs: &["curl"], option: "-u", stands_apart: true },
    Short { programs: &["curl"], option: "-U", stands_apart: true },
    Short { programs: &["openssl"], option: "-k", stands_apart: true },
    Short { programs: &["redis-cli"], option: "-a", stands_apart: true },
];

/// Long options that take a name and a secret, `a:b`.
const LOGINS: [&str; 2] = ["--user", "--proxy-user"];

/// The words of a command, as far as they may be shown; with --anonymous nothing of them.
pub(crate) fn shown(words: &[String], anonymous: bool) -> Vec<String> {
    match anonymous && !words.is_empty() {
        true => vec!["command".to_string()],
        false => masked(words),
    }
}

/// The words of a command that are stored, as [`kept`] or all; with --anonymous nothing of them.
pub(crate) fn stored(words: &[OsString], anonymous: bool, all: bool) -> Vec<String> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let words: Vec<String> = words.iter().map(text).collect();
    match anonymous {
        true => shown(&words, true),
        false if all => words,
        false => kept(&words),
    }
}

/// Words with [`MASK`] for the values of `TOKEN=x`, `--password x`, `X-Api-Key: x` and
/// `//user:x@host`, also within a word that is a command itself.
pub(crate) fn masked(words: &[String]) -> Vec<String> {
    let mut before = Before::default();
    words.iter().map(|word| masked_word(word, &mut before)).collect()
}

/// What stands for the words behind a program's name, before their hash.
const WORDS: &str = "words:";

/// Programs that set how the next one runs, by numbers and options.
const SETTERS: [&str; 6] = ["chrt", "ionice", "nice", "numactl", "setarch", "taskset"];

/// Options of this program whose value is a name and no command.
const NAMED: [&str; 2] = ["--name", "--command-name"];

/// A command as it is stored: its program, and by what the other words can be told from others.
/// Whoever has a guess at all of them can check it by that.
pub(crate) fn kept(words: &[String]) -> Vec<String> {
    // Before the program a shell's line may have variables; what they run is no program.
    let at = words.iter().position(|word| !word.contains('='));
    let at = at.filter(|at| !words[..*at].iter().any(|word| word.contains(['$', '`'])));
    let program = at.filter(|at| words[*at].chars().all(is_plain));
    hashed(words, program)
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_./+-".contains(c)
}

/// The program, if one is known, and a hash of the other words.
fn hashed(words: &[String], program: Option<usize>) -> Vec<String> {
    let others = || words.iter().enumerate().filter(|(place, _)| Some(*place) != program);
    // FNV-1a (Fowler, Noll and Vo): the same in every build. A byte that no word has stands behind
    // each. A program is told apart by its file: its name may be a path or not.
    let bytes = others().flat_map(|(_, word)| word.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let is_more = others().next().is_some();
    let program = program.map(|at| words[at].clone());
    program.into_iter().chain(is_more.then(|| format!("{WORDS}{hash:016x}"))).collect()
}

/// The same of a line for a shell; of one that is no whole line a hash alone.
pub(crate) fn kept_line(line: &str) -> String {
    let of = shell_words::split(line).map(|words| kept(&words));
    of.unwrap_or_else(|_| hashed(&[line.to_string()], None)).join(" ")
}

/// The same of what stands before a command. Plain options and numbers of programs that set CPUs,
/// policy and priority stay: they say what was measured.
pub(crate) fn kept_prefix(words: &[String]) -> Vec<String> {
    let is_setter = |word: &String| SETTERS.contains(&word.as_str());
    let is_setting = |word: &String| {
        let is_number = word.chars().all(|c| c.is_ascii_digit() || ",-:".contains(c));
        let is_letter = word.len() == 2 && word.starts_with('-');
        is_setter(word) || is_number || is_letter
    };
    let is_plain = words.iter().all(is_setting) && words.first().is_none_or(is_setter);
    if is_plain { words.to_vec() } else { kept(words) }
}

/// This program's own words, with the command behind `--`, and the command lines among the words
/// of `run` and `compare`, as they are [`kept`]. A line of one plain word is a program's name.
pub(crate) fn kept_invocation(words: &[String]) -> Vec<String> {
    let own = words.iter().position(|word| word == "--").map_or(words.len(), |end| end + 1);
    let (own, command) = words.split_at(own);
    let mut all = masked(own);
    // Before the command there may be --color WHEN.
    let has_lines = |word: &String| ["run", "compare"].contains(&word.as_str());
    let from = own.iter().take(4).skip(1).position(has_lines).map_or(own.len(), |at| at + 2);
    for (at, word) in own.iter().enumerate().skip(from) {
        let (flag, line) = match word.split_once('=') {
            Some((flag, line)) if word.starts_with("--") => (format!("{flag}="), line),
            // A short option with its value behind it.
            _ if word.starts_with('-') && !word.starts_with("--") && word.is_char_boundary(2) => {
                (word[..2].to_string(), &word[2..])
            }
            _ => (String::new(), &**word),
        };
        let before = if flag.is_empty() { &own[at - 1] } else { flag.trim_end_matches('=') };
        let is_line = line.contains(|c| !is_plain(c) && !",:".contains(c));
        if is_line && !NAMED.contains(&before) {
            let prefix = shell_words::split(line).map(|words| kept_prefix(&words).join(" "));
            all[at] = flag + &prefix.unwrap_or_else(|_| kept_line(line));
        }
    }
    [all, kept(command)].concat()
}

/// What is known of the pieces before one.
#[derive(Default)]
struct Before {
    /// The flag just before asks for a secret.
    is_value: bool,
    /// It asks for a name and a secret.
    is_login: bool,
    /// A program that has such options.
    program: Option<&'static str>,
}

impl Before {
    /// A piece that is an option of the program before it, or the value of one.
    fn option(&mut self, piece: &str) -> Option<String> {
        if mem::take(&mut self.is_login) {
            let login = piece.split_once(':').filter(|(name, _)| !name.contains('/'));
            return login.map(|(name, _)| format!("{name}:{MASK}"));
        }
        if LOGINS.contains(&piece) {
            self.is_login = true;
            return Some(piece.to_string());
        }
        let name = piece.rsplit('/').next().unwrap_or(piece);
        let programs = SHORT.iter().flat_map(|of| of.programs);
        if let Some(program) = programs.copied().find(|program| *program == name) {
            self.program = Some(program);
            return None;
        }
        let program = self.program?;
        let own = SHORT.iter().filter(|of| of.programs.contains(&program));
        let of = own.into_iter().find(|of| piece.starts_with(of.option))?;
        match piece == of.option {
            true => {
                self.is_value = of.stands_apart;
                Some(piece.to_string())
            }
            false => Some(format!("{}{MASK}", of.option)),
        }
    }
}

fn masked_word(word: &str, before: &mut Before) -> String {
    let (mut text, mut rest) = (String::new(), word);
    while !rest.is_empty() {
        let (blanks, from) = rest.split_at(rest.len() - rest.trim_start().len());
        let (piece, next) = from.split_at(end_of_piece(from));
        text += blanks;
        rest = next;
        if mem::take(&mut before.is_value) && !piece.starts_with('-') {
            text += MASK;
            continue;
        }
        if let Some(shown) = before.option(piece) {
            text += &shown;
            continue;
        }
        before.is_value = piece.starts_with('-') && !piece.contains('=') && is_secret(piece);
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
        let user = user.map(|(user, _)| user).filter(|user| !user.contains('/'));
        let login = user.and_then(|user| user.split_once(':'));
        // Of ssh it is a user's name; of the web it is as good as a password.
        let is_token = ["http", "https"].iter().any(|scheme| name.ends_with(scheme));
        if let Some((name, _)) = login {
            text += &format!("//{name}:{MASK}");
            rest = &tail[tail.find('@').unwrap_or(tail.len())..];
        } else if user.is_some() && is_token {
            text += &format!("//{MASK}");
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
    // PWD alone is the folder that a shell is in.
    let is_password = last.eq_ignore_ascii_case("pwd") && last.len() < name.trim_matches('-').len();
    let is_last = LAST.iter().any(|part| last.eq_ignore_ascii_case(part));
    NAMES.iter().any(|part| plain.contains(part)) || is_last || is_password
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
            ("mysql -pabc -u me db", "mysql -p*** -u me db"),
            ("/usr/bin/mysqldump -pabc db", "/usr/bin/mysqldump -p*** db"),
            ("curl -u a:abc x", "curl -u *** x"),
            ("curl -ua:abc x", "curl -u*** x"),
            ("http --user a:abc x", "http --user a:*** x"),
            ("sshpass -p abc ssh me@host", "sshpass -p *** ssh me@host"),
            ("sshpass -pabc ssh host", "sshpass -p*** ssh host"),
            ("openssl enc -k abc", "openssl enc -k ***"),
            (
                "env MY_PWD=abc SLACK_WEBHOOK=abc JWT=abc x",
                "env MY_PWD=*** SLACK_WEBHOOK=*** JWT=*** x",
            ),
            ("env SESSION_COOKIE=abc BEARER=abc x", "env SESSION_COOKIE=*** BEARER=*** x"),
            ("env AUTH=abc KEY=abc x", "env AUTH=*** KEY=*** x"),
            ("redis-cli -a abc get x", "redis-cli -a *** get x"),
            ("curl --oauth2-bearer abc x", "curl --oauth2-bearer *** x"),
            ("git clone https://abc@host/p", "git clone https://***@host/p"),
            ("sh -c 'cd x; mysql -pabc'", "sh -c cd x; mysql -p***"),
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
            "git clone ssh://git@host/p",
            "mkdir -p a/b",
            "sudo --user me make",
            "mysql -p db",
            "monkey=1 author=me ssh -p 22 me@host",
        ] {
            assert_eq!(line(typed), typed);
        }
    }

    #[test]
    fn of_a_command_its_program_and_a_hash_are_kept() {
        let words = |text: &str| shell_words::split(text).unwrap();
        let kept_of = |text: &str| kept(&words(text)).join(" ");
        assert_eq!(kept_of("a"), "a");
        assert_eq!(kept_of("db hunter2"), "db words:0d2630db1a24ae69");
        assert_ne!(kept_of("db hunter2"), kept_of("db hunter 2"));
        assert_eq!(kept(&[]), [""; 0]);
        // Variables before the program, and what is no plain name.
        for (line, program) in
            [("A=hunter2 db hunter2", "db "), ("x;hunter2", ""), ("A=hunter2", "")]
        {
            let kept = kept_line(line);
            let hash = kept.strip_prefix(program).and_then(|rest| rest.strip_prefix(WORDS));
            assert!(hash.is_some_and(|hash| hash.len() == 16), "{line}: {kept}");
        }
        for line in ["db 'not closed hunter2", "P=$(pass show bank) db", "P=`hunter2 x` db"] {
            assert_eq!(kept_line(line).len(), WORDS.len() + 16, "{line}");
        }
        let line = kept_invocation(&words("switchcost cost --quiet -- db hunter2"));
        assert_eq!(line[..4], ["switchcost", "cost", "--quiet", "--"]);
        assert_eq!(line[4..], kept(&words("db hunter2")));
        assert_eq!(kept_invocation(&words("switchcost ring")), ["switchcost", "ring"]);
    }

    #[test]
    fn of_command_lines_among_the_words_the_same_is_kept() {
        let line = |text: &str| {
            let words = shell_words::split(&format!("switchcost {text}")).unwrap();
            kept_invocation(&words)[1..].join(" ")
        };
        let kept = kept_line("db hunter2");
        assert_eq!(line("run 'db hunter2' '--vs=db hunter2'"), format!("run {kept} --vs={kept}"));
        assert_eq!(line("run -p 'db hunter2' true"), format!("run -p {kept} true"));
        for plain in [
            "ring --name 'my run' -N 2",
            "ring '--name=my run'",
            "run --json /tmp/a.json -n 5 --budget 2s make",
            "compare --ab 'chrt -f 10 taskset -c 0,1' 'nice -n 5'",
        ] {
            assert_eq!(line(plain), plain.replace('\'', ""));
        }
        for secret in [
            "compare --ab 'nice -n 5 db hunter2' ''",
            "compare --ab 'nice -n5 7z -phunter2' 'numactl --token=hunter2'",
            "run 'cat</hunter2' 'A=hunter2;db'",
            "run '-px;hunter2' '--vs=curl${IFS}hunter2'",
            "run -S 'env TOKEN=hunter2 sh' db",
            "--color never run 'x;hunter2'",
        ] {
            assert!(!line(secret).contains("hunter2"), "{secret}");
        }
        let own = ["/opt/my tools/switchcost", "run", "true"].map(str::to_string);
        assert_eq!(kept_invocation(&own), own);
    }

    #[test]
    fn anonymous_is_nothing_of_it() {
        assert_eq!(shown(&["make".to_string()], true), ["command"]);
        assert_eq!(shown(&[], true), [""; 0]);
    }
}

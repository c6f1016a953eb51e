//! Command lines as they are stored and shown: without the values of what is called a password or
//! the like. By a list, so as far as one goes: a secret that no name announces is not found
//! (SECURITY.md).
//!
//! - *Masked*, for a reader: `mysql -psesame db` becomes `mysql -p*** db`, `TOKEN=x make` becomes
//!   `TOKEN=*** make`.
//! - *Kept*, for a file: of a command, the program and a hash of the other words: `db hunter2`
//!   becomes `db words:0d2630db1a24ae69`. Two launches of one command can be recognised, but nothing
//!   is to be read.

use std::ffi::OsString;
use std::mem;

/// Sign in place of a value.
const MASK: &str = "***";

/// Parts of the names of secrets, without `_` and `-`.
const SECRET_PARTS: [&str; 15] = [
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

/// Last words of the names of secrets; inside of a word they mean nothing: `compass`, `monkey`.
const SECRET_ENDINGS: [&str; 3] = ["pass", "auth", "key"];

/// A short option that takes a secret.
struct SecretOption {
    programs: &'static [&'static str],
    option: &'static str,
    /// True where the value may be the next word.
    stands_apart: bool,
}

const SECRET_OPTIONS: [SecretOption; 6] = [
    SecretOption {
        programs: &["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"],
        option: "-p",
        stands_apart: false,
    },
    SecretOption { programs: &["sshpass"], option: "-p", stands_apart: true },
    SecretOption { programs: &["curl"], option: "-u", stands_apart: true },
    SecretOption { programs: &["curl"], option: "-U", stands_apart: true },
    SecretOption { programs: &["openssl"], option: "-k", stands_apart: true },
    SecretOption { programs: &["redis-cli"], option: "-a", stands_apart: true },
];

/// Long options that take a name and a secret, `a:b`.
const LOGINS: [&str; 2] = ["--user", "--proxy-user"];

/// Returns the words of a command, as far as they may be shown; with --anonymous nothing of them.
pub(crate) fn shown(words: &[String], anonymous: bool) -> Vec<String> {
    if anonymous && !words.is_empty() { vec!["command".to_string()] } else { masked(words) }
}

/// Returns the words of a command that are stored, as [`kept`] or all; with --anonymous nothing of
/// them.
pub(crate) fn stored(words: &[OsString], anonymous: bool, all: bool) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if anonymous {
        shown(&words, true)
    } else if all {
        words
    } else {
        kept(&words)
    }
}

/// Replaces the values of `TOKEN=x`, `--password x`, `X-Api-Key: x` and `//user:x@host` by [`MASK`],
/// also within a word that is a command itself.
pub(crate) fn masked(words: &[String]) -> Vec<String> {
    let mut state = MaskState::default();
    words.iter().map(|word| masked_word(word, &mut state)).collect()
}

/// Prefix of the hash in place of the words behind a program's name.
const WORDS: &str = "words:";

/// Programs that set how the next one runs, by numbers and options.
const SETTERS: [&str; 6] = ["chrt", "ionice", "nice", "numactl", "setarch", "taskset"];

/// Options of this program whose value is a name and no command.
const NAME_OPTIONS: [&str; 2] = ["--name", "--command-name"];

/// Returns a command as it is stored: its program, and a hash that tells the other words from
/// others. Whoever has a guess at all of them can check it by that.
pub(crate) fn kept(words: &[String]) -> Vec<String> {
    hashed(words, find_program(words))
}

/// Finds the program of a command, if it can be shown: behind variables, a plain name.
fn find_program(words: &[String]) -> Option<usize> {
    let index = words.iter().position(|word| !word.contains('='))?;
    // A command in a variable is not the program.
    let runs_another = words[..index].iter().any(|word| word.contains(['$', '`']));
    if !runs_another && words[index].chars().all(is_plain) { Some(index) } else { None }
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_./+-".contains(c)
}

/// Start and multiplier of FNV-1a (Fowler, Noll and Vo), which is the same in every build.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x100_0000_01b3;

/// Returns the program, if one is known, and a hash of the other words. (A program is told apart by
/// its file: its name may be a path or not.)
fn hashed(words: &[String], program: Option<usize>) -> Vec<String> {
    let mut parts = Vec::new();
    let (mut hash, mut has_others) = (FNV_START, false);
    for (index, word) in words.iter().enumerate() {
        if Some(index) == program {
            parts.push(word.clone());
            continue;
        }
        has_others = true;
        for byte in word.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        // A byte that no word has, zero, stands behind each.
        hash = hash.wrapping_mul(FNV_PRIME);
    }
    if has_others {
        parts.push(format!("{WORDS}{hash:016x}"));
    }
    parts
}

/// Returns a line for a shell as it is stored, like [`kept`]; a hash alone for one that cannot be
/// split into words.
pub(crate) fn kept_line(line: &str) -> String {
    let parts = match shell_words::split(line) {
        Ok(words) => kept(&words),
        Err(_) => hashed(&[line.to_string()], None),
    };
    parts.join(" ")
}

/// Returns the words before a command as they are stored. Plain options and numbers of programs that
/// set CPUs, policy and priority stay, as they say what was measured; other words are [`kept`].
pub(crate) fn kept_prefix(words: &[String]) -> Vec<String> {
    let starts_well = match words.first() {
        Some(first) => is_setter(first),
        None => true,
    };
    if starts_well && words.iter().all(|word| is_setting(word)) {
        words.to_vec()
    } else {
        kept(words)
    }
}

fn is_setter(word: &str) -> bool {
    SETTERS.contains(&word)
}

/// Returns whether a word sets something and hides nothing: a setter, a number, an option of one
/// letter.
fn is_setting(word: &str) -> bool {
    let is_number = word.chars().all(|c| c.is_ascii_digit() || ",-:".contains(c));
    let is_option = word.len() == 2 && word.starts_with('-');
    is_setter(word) || is_number || is_option
}

/// Returns this program's own words, with the command behind `--`, and the command lines among the
/// words of `run` and `compare`, as they are [`kept`]. A line of one plain word is a program's name.
pub(crate) fn kept_invocation(words: &[String]) -> Vec<String> {
    let own_count = match words.iter().position(|word| word == "--") {
        Some(end) => end + 1,
        None => words.len(),
    };
    let (own_words, command) = words.split_at(own_count);
    let mut kept_words = masked(own_words);
    for index in first_line(own_words)..own_words.len() {
        let WordParts { flag, value } = WordParts::of_word(&own_words[index]);
        let option = if flag.is_empty() {
            own_words[index - 1].as_str()
        } else {
            flag.trim_end_matches('=')
        };
        let is_line = value.contains(|c| !is_plain(c) && !",:".contains(c));
        if is_line && !NAME_OPTIONS.contains(&option) {
            let line = match shell_words::split(value) {
                Ok(words) => kept_prefix(&words).join(" "),
                Err(_) => kept_line(value),
            };
            kept_words[index] = format!("{flag}{line}");
        }
    }
    kept_words.extend(kept(command));
    kept_words
}

/// Returns the index of the first word that may be a command line: the one behind `run` or
/// `compare`, before which there may be --color WHEN. The number of words if there is none.
fn first_line(own_words: &[String]) -> usize {
    for (index, word) in own_words.iter().enumerate().take(4).skip(1) {
        if ["run", "compare"].contains(&word.as_str()) {
            return index + 1;
        }
    }
    own_words.len()
}

/// The parts of a word: `--vs=` and `db x`, `-p` and `db x`, or no flag.
struct WordParts<'a> {
    flag: &'a str,
    value: &'a str,
}

impl<'a> WordParts<'a> {
    fn of_word(word: &'a str) -> Self {
        let mut flag_length = 0;
        if word.starts_with("--") {
            if let Some(end) = word.find('=') {
                flag_length = end + 1;
            }
        } else if word.starts_with('-') && word.is_char_boundary(2) {
            // A short option with its value behind it.
            flag_length = 2;
        }
        let (flag, value) = word.split_at(flag_length);
        Self { flag, value }
    }
}

/// Findings in the pieces before one.
#[derive(Default)]
struct MaskState {
    /// True where the flag just before asks for a secret.
    is_value: bool,
    /// True where the flag just before asks for a name and a secret.
    is_login: bool,
    /// A program that has secret options.
    program: Option<&'static str>,
}

impl MaskState {
    /// Masks a piece that is an option of the program before it, or the value of one; none for any
    /// other piece.
    fn mask_option(&mut self, piece: &str) -> Option<String> {
        if mem::take(&mut self.is_login) {
            return mask_login(piece);
        }
        if LOGINS.contains(&piece) {
            self.is_login = true;
            return Some(piece.to_string());
        }
        let name = piece.rsplit('/').next().unwrap_or(piece);
        for program in SECRET_OPTIONS.iter().flat_map(|option| option.programs) {
            if *program == name {
                self.program = Some(program);
                return None;
            }
        }
        let program = self.program?;
        for SecretOption { programs, option, stands_apart } in &SECRET_OPTIONS {
            if !programs.contains(&program) || !piece.starts_with(option) {
                continue;
            }
            if piece == *option {
                self.is_value = *stands_apart;
                return Some(piece.to_string());
            }
            return Some(format!("{option}{MASK}"));
        }
        None
    }
}

/// Masks the secret of `name:secret`.
fn mask_login(piece: &str) -> Option<String> {
    let (name, _) = piece.split_once(':')?;
    if name.contains('/') { None } else { Some(format!("{name}:{MASK}")) }
}

fn masked_word(word: &str, state: &mut MaskState) -> String {
    let (mut text, mut rest) = (String::new(), word);
    while !rest.is_empty() {
        let (blanks, from) = rest.split_at(rest.len() - rest.trim_start().len());
        let (piece, next) = from.split_at(end_of_piece(from));
        text += blanks;
        rest = next;
        if mem::take(&mut state.is_value) && !piece.starts_with('-') {
            text += MASK;
            continue;
        }
        if let Some(shown) = state.mask_option(piece) {
            text += &shown;
            continue;
        }
        state.is_value = piece.starts_with('-') && !piece.contains('=') && is_secret(piece);
        let masked = masked_piece(piece);
        text += &masked.text;
        if masked.is_open {
            // The value of a header is the whole rest.
            return text + " " + MASK;
        }
    }
    text
}

/// Returns the end of the first piece: a blank that is in no quotation marks.
fn end_of_piece(text: &str) -> usize {
    let mut quote = None;
    for (index, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        if quote.is_none() && c.is_whitespace() {
            return index;
        }
    }
    text.len()
}

/// A piece without the values of secrets.
struct MaskedPiece {
    text: String,
    /// True where the value of the last one is still to come.
    is_open: bool,
}

fn masked_piece(piece: &str) -> MaskedPiece {
    let (mut text, mut rest) = (String::new(), piece);
    while let Some(end) = rest.find(['=', ':']) {
        let (name_and_sign, tail) = rest.split_at(end + 1);
        text += name_and_sign;
        let name = name_and_sign[..end].trim_end_matches(['"', '\'']);
        // For ssh it is a user's name; for the web it is as good as a password.
        let is_web = name.ends_with("http") || name.ends_with("https");
        if let Some(user) = user_of_url(tail) {
            if let Some((login, _)) = user.split_once(':') {
                text += &format!("//{login}:{MASK}");
                rest = &tail["//".len() + user.len()..];
                continue;
            }
            if is_web {
                text += &format!("//{MASK}");
                rest = &tail["//".len() + user.len()..];
                continue;
            }
        }
        if !is_secret(last_word(name)) {
            rest = tail;
            continue;
        }
        let value = tail.trim_start_matches(['"', '\'']);
        if value.is_empty() {
            return MaskedPiece { text, is_open: end + 1 == rest.len() && rest.ends_with(':') };
        }
        let quote = &tail[..tail.len() - value.len()];
        let ends_early = !quote.is_empty() || piece.contains('?');
        let value_end = if ends_early { value.find(['"', '\'', '&']) } else { None };
        text += &format!("{quote}{MASK}");
        rest = &value[value_end.unwrap_or(value.len())..];
    }
    MaskedPiece { text: text + rest, is_open: false }
}

/// Returns the user in `//user@host`, with the password if there is one.
fn user_of_url(text: &str) -> Option<&str> {
    let (user, _) = text.strip_prefix("//")?.split_once('@')?;
    if user.contains('/') { None } else { Some(user) }
}

/// Returns the name before a sign, without what stands before it.
fn last_word(name: &str) -> &str {
    let is_separator = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    name.rsplit(is_separator).next().unwrap_or(name)
}

/// Returns whether a name announces a secret.
fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_uppercase();
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name);
    // PWD alone is the folder that a shell is in.
    let is_password = last.eq_ignore_ascii_case("pwd") && last.len() < name.trim_matches('-').len();
    let is_ending = SECRET_ENDINGS.iter().any(|ending| last.eq_ignore_ascii_case(ending));
    SECRET_PARTS.iter().any(|part| plain.contains(part)) || is_ending || is_password
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

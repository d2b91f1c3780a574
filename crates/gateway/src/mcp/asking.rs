//! Words by which a form asks for a credential, in the spellings and languages that are likely.

/// What nobody should type into a stranger's form. Several words count one after the other, or as one.
const CREDENTIALS: [&str; 80] = [
    "password",
    "passwort",
    "kennwort",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "pass phrase",
    "pin",
    "pin code",
    "secret",
    "client secret",
    "shared secret",
    "token",
    "api token",
    "auth token",
    "access token",
    "refresh token",
    "bearer token",
    "session token",
    "security token",
    "apikey",
    "credential",
    "cvv",
    "cvc",
    "otp",
    "totp",
    "2fa",
    "mfa",
    "ssn",
    "mnemonic",
    "bearer",
    "jwt",
    "iban",
    "api key",
    "auth key",
    "access key",
    "private key",
    "secret key",
    "ssh key",
    "signing key",
    "license key",
    "encryption key",
    "card number",
    "credit card",
    "debit card",
    "one time",
    "verification code",
    "confirmation code",
    "security code",
    "recovery code",
    "backup code",
    "authentication code",
    "authenticator code",
    "login code",
    "sms code",
    "seed phrase",
    "recovery phrase",
    "recovery key",
    "browser code",
    "session cookie",
    // Other languages, without accents.
    "geheimzahl",
    "zugangsdaten",
    "mot de passe",
    "code secret",
    "contrasena",
    "senha",
    "palavra passe",
    "wachtwoord",
    "losenord",
    "adgangskode",
    "passord",
    "salasana",
    "haslo",
    "heslo",
    "parola",
    "jelszo",
    "sifre",
    "mat khau",
    "kata sandi",
];

/// In scripts that are not folded, or that put no blanks between words.
const ELSEWHERE: [&str; 18] = [
    "пароль",
    "парола",
    "лозинка",
    "κωδικός",
    "κωδικος",
    "密码",
    "密碼",
    "口令",
    "验证码",
    "驗證碼",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "암호",
    "รหัสผ่าน",
    "كلمة المرور",
    "סיסמה",
    "पासवर्ड",
];

/// Words by which prose asks for something.
const ASKING: [&str; 11] =
    ["your", "enter", "type", "paste", "provide", "give", "input", "insert", "submit", "need", "send"];

/// From so many letters on a name is found within others, and in prose that asks for nothing.
const TELLING: usize = 8;

/// The credential that a name or a title asks for: `apiKey`, `API_KEY`, `password1` and `your API key` are the same.
pub(super) fn in_name(name: &str) -> Option<&'static str> {
    let found = readings(name).into_iter().find_map(|reading| {
        let together = reading.concat();
        CREDENTIALS.into_iter().find(|credential| {
            let whole = credential.replace(' ', "");
            has(&reading, credential) || whole.len() >= TELLING && together.contains(&whole)
        })
    });
    found.or_else(|| elsewhere(name))
}

/// The credential that prose asks for. What is short may be something else there, unless it is asked for.
pub(super) fn in_prose(text: &str) -> Option<&'static str> {
    let found = readings(text).into_iter().find_map(|reading| {
        let asks = reading.iter().any(|word| ASKING.contains(&word.as_str()));
        let counts = |credential: &&str| asks || credential.replace(' ', "").len() >= TELLING;
        CREDENTIALS.into_iter().filter(counts).find(|credential| has(&reading, credential))
    });
    found.or_else(|| elsewhere(text))
}

fn elsewhere(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    ELSEWHERE.into_iter().find(|credential| text.contains(credential))
}

/// Whether the words of the credential stand there one after the other; of several things as of one.
fn has(words: &[String], credential: &str) -> bool {
    let wanted: Vec<&str> = credential.split(' ').collect();
    // A count of tokens is no token.
    let same = |word: &String, wanted: &&str| {
        word == wanted || word.strip_suffix('s') == Some(*wanted) && (*wanted != "token" || credential != "token")
    };
    words.windows(wanted.len()).any(|words| words.iter().zip(&wanted).all(|(word, wanted)| same(word, wanted)))
}

/// The words of a text, with digits as ends of words, as letters, and as what they look like.
fn readings(text: &str) -> [Vec<String>; 3] {
    let folded: String = text.chars().filter_map(fold).collect();
    let looks: String = folded.chars().map(looks_like).collect();
    [words(&folded, true), words(&folded, false), words(&looks, false)]
}

/// `userAPIKey` is three words.
fn words(text: &str, digits_end: bool) -> Vec<String> {
    let mut words = vec![String::new()];
    let all: Vec<char> = text.chars().collect();
    for (at, c) in all.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| all.get(at));
        let small = |c: Option<&char>| c.is_some_and(|c| c.is_lowercase());
        let hump =
            c.is_uppercase() && (small(before) || before.is_some_and(|c| c.is_uppercase()) && small(all.get(at + 1)));
        let part = !c.is_alphanumeric() || digits_end && c.is_numeric();
        if hump || part {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| !part) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The Latin letter that this one is, or looks like. Marks on top are left out.
fn fold(c: char) -> Option<char> {
    let folded = match c {
        '\u{300}'..='\u{36f}' => return None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'а' | 'α' | 'ɑ' => 'a',
        'À'..='Å' | 'Ā' | 'Ă' | 'Ą' | 'А' | 'Α' => 'A',
        'ç' | 'ć' | 'č' | 'с' | 'ϲ' => 'c',
        'Ç' | 'Ć' | 'Č' | 'С' => 'C',
        'ď' | 'đ' | 'ԁ' => 'd',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' | 'е' | 'ё' | 'ε' => 'e',
        'È'..='Ë' | 'Ē' | 'Ę' | 'Ě' | 'Е' | 'Ε' => 'E',
        'ğ' | 'ɡ' => 'g',
        'һ' => 'h',
        'ì'..='ï' | 'ī' | 'į' | 'ı' | 'і' | 'ї' | 'ι' => 'i',
        'Ì'..='Ï' | 'İ' | 'І' | 'Ι' => 'I',
        'ј' => 'j',
        'κ' | 'к' => 'k',
        'К' | 'Κ' => 'K',
        'ł' | 'ľ' | 'ӏ' => 'l',
        'Ł' => 'L',
        'м' => 'm',
        'М' | 'Μ' => 'M',
        'ñ' | 'ń' | 'ň' | 'η' => 'n',
        'Ñ' | 'Ν' => 'N',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' | 'о' | 'ο' | 'σ' => 'o',
        'Ò'..='Ö' | 'Ø' | 'О' | 'Ο' => 'O',
        'р' | 'ρ' => 'p',
        'Р' | 'Ρ' => 'P',
        'ř' | 'г' => 'r',
        'ş' | 'š' | 'ś' | 'ѕ' | 'ș' => 's',
        'Ş' | 'Š' | 'Ś' | 'Ѕ' => 'S',
        'ť' | 'т' | 'τ' => 't',
        'Т' | 'Τ' => 'T',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' | 'υ' => 'u',
        'Ù'..='Ü' => 'U',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ω' | 'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'Х' | 'Χ' => 'X',
        'ý' | 'ÿ' | 'у' | 'γ' => 'y',
        'У' | 'Υ' => 'Y',
        'ż' | 'ź' | 'ž' => 'z',
        c => c,
    };
    Some(folded)
}

/// The letter that is meant by a digit or a sign within a word.
fn looks_like(c: char) -> char {
    match c {
        '@' | '4' => 'a',
        '3' | '€' => 'e',
        '1' | '!' | '|' => 'i',
        '0' => 'o',
        '5' | '$' => 's',
        '7' => 't',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(words("userAPIKey2_new-one", true), ["user", "api", "key", "new", "one"]);
        assert_eq!(words("a2FA", false), ["a2fa"]);
        assert_eq!(in_name("user_2fa"), Some("2fa"));
        assert_eq!(in_name("My Tokens"), None);
        assert_eq!(in_name("my access tokens"), Some("access token"));
    }

    #[test]
    fn prose_has_to_ask_for_what_is_short() {
        assert_eq!(in_prose("Where to pin the message"), None);
        assert_eq!(in_prose("Enter the PIN of the card"), Some("pin"));
        assert_eq!(in_prose("The page token of the last answer"), None);
        assert_eq!(in_prose("the account's password"), Some("password"));
    }
}

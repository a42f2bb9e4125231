//! The keywords that count fully in CodeBLEU's weighted n-gram match (its `keywords/*.txt`, version 0.7.0).

use crate::text::language::Language;

const PYTHON: &str = "False None True and as assert async await break case class continue def del elif else except \
    finally for from global if import in is lambda match nonlocal not or pass raise return try type while with yield";

const JAVA: &str = "abstract assert boolean break byte case catch char class const continue default do double else \
    enum extends final finally float for goto if implements import instanceof int interface long native new package \
    private protected public return short static strictfp super switch synchronized this throw throws transient try \
    void volatile while";

const C_SHARP: &str = "abstract add alias as ascending async await base bool break by byte case catch char checked \
    class const continue decimal default delegate descending do double dynamic else enum equals event explicit extern \
    false finally fixed float for foreach from get global goto group if implicit in int interface internal into is \
    join let lock long nameof namespace new notnull null object on operator orderby out override params partial \
    private protected public readonly ref remove return sbyte sealed select set short sizeof stackalloc static string \
    struct switch this throw true try typeof uint ulong unchecked unmanaged unsafe ushort using value var virtual void \
    volatile when where while yield";

/// Keywords of JavaScript: CodeBLEU has no list for TypeScript.
const TYPESCRIPT: &str = "await break case catch class const continue debugger default delete do else enum export \
    extends false finally for function if implements import in instanceof interface let new null package private \
    protected public return super switch static this throw try True typeof var void while with yield";

/// The keywords of the language.
pub(super) fn keywords(language: Language) -> impl Iterator<Item = &'static str> {
    let keywords = match language {
        Language::Python => PYTHON,
        Language::Java => JAVA,
        Language::CSharp => C_SHARP,
        Language::TypeScript => TYPESCRIPT,
    };
    keywords.split_ascii_whitespace()
}

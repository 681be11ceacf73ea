/**
 * Ranges of letters that some models' own split patterns list by code point, as the inside of a
 * character class. They are data of these models: where they leave out a letter, so must we.
 */

/** DeepSeek LLM: letters with case, as far as its authors' Unicode version knew them. */
export const casedLetters =
  String.raw`A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af` +
  String.raw`\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1` +
  String.raw`\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5` +
  String.raw`\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a` +
  String.raw`\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d` +
  String.raw`\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3` +
  String.raw`\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115` +
  String.raw`\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f` +
  String.raw`\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3` +
  String.raw`\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf` +
  String.raw`\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\u{10400}-\u{1044f}` +
  String.raw`\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}` +
  String.raw`\u{118a0}-\u{118df}\u{1e900}-\u{1e943}`;

/** DeepSeek LLM and Coder: Chinese, and everything else from U+0800 to U+4E00; Hangul. */
export const deepseekScripts = String.raw`\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff`;

/** AFMoE: scripts that are written without spaces. */
export const asianScripts =
  String.raw`\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u30ff\uff65-\uff9f\u2f00-\u2fdf` +
  String.raw`\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff` +
  String.raw`\uac00-\ud7af\u1100-\u11ff`;

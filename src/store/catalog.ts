/** Models that zinc knows by a short name, and where each lies. */

/** The hub that short names and `hf:` refer to; HF_ENDPOINT names another. */
export const hubUrl = "https://huggingface.co";

export interface CatalogEntry {
  readonly name: string;
  readonly title: string;
  readonly repository: string;
  readonly file: string;
  /** Size of the file, where it is known for sure; otherwise the server says it. */
  readonly sizeBytes?: number;
  /** The same for its hash. */
  readonly sha256?: string;
}

/**
 * A size or a hash stands here only if several published lists agree on it. A file that was
 * replaced on the hub since is refused before it is downloaded.
 */
export const catalog: readonly CatalogEntry[] = [
  {
    name: "llama-3.1-8b",
    title: "Llama 3.1 8B Instruct, Q4_K_M",
    repository: "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
    file: "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
    sizeBytes: 4_920_739_232,
    sha256: "7b064f5842bf9532c91456deda288a1b672397a54fa729aa665952863033557c",
  },
  {
    name: "qwen3.5-2b",
    title: "Qwen3.5 2B, Q4_K_M",
    repository: "unsloth/Qwen3.5-2B-GGUF",
    file: "Qwen3.5-2B-Q4_K_M.gguf",
    sizeBytes: 1_280_835_840,
    sha256: "aaf42c8b7c3cab2bf3d69c355048d4a0ee9973d48f16c731c0520ee914699223",
  },
  {
    name: "qwen3.5-0.8b",
    title: "Qwen3.5 0.8B, Q4_K_M",
    repository: "unsloth/Qwen3.5-0.8B-GGUF",
    file: "Qwen3.5-0.8B-Q4_K_M.gguf",
    sizeBytes: 532_517_120,
    sha256: "bd258782e35f7f458f8aced1adc053e6e92e89bc735ba3be89d38a06121dc517",
  },
  {
    name: "qwen3.5-4b",
    title: "Qwen3.5 4B, Q4_K_M",
    repository: "unsloth/Qwen3.5-4B-GGUF",
    file: "Qwen3.5-4B-Q4_K_M.gguf",
    sizeBytes: 2_740_937_888,
    sha256: "00fe7986ff5f6b463e62455821146049db6f9313603938a70800d1fb69ef11a4",
  },
  {
    name: "qwen3.5-35b-a3b",
    title: "Qwen3.5 35B-A3B, UD-Q4_K_XL",
    repository: "unsloth/Qwen3.5-35B-A3B-GGUF",
    file: "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf",
    sizeBytes: 22_241_950_336,
    sha256: "1b0ac637dfa092bbba2793977db9485a40c4f8b42df5fe342f0076d61b66ae83",
  },
  {
    name: "llama-3.2-1b",
    title: "Llama 3.2 1B Instruct, Q4_K_M",
    repository: "bartowski/Llama-3.2-1B-Instruct-GGUF",
    file: "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
    sizeBytes: 807_694_464,
    sha256: "6f85a640a97cf2bf5b8e764087b1e83da0fdb51d7c9fab7d0fece9385611df83",
  },
  {
    name: "llama-3.2-3b",
    title: "Llama 3.2 3B Instruct, Q4_K_M",
    repository: "bartowski/Llama-3.2-3B-Instruct-GGUF",
    file: "Llama-3.2-3B-Instruct-Q4_K_M.gguf",
    sizeBytes: 2_019_377_696,
    sha256: "6c1a2b41161032677be168d354123594c0e6e67d2b9227c84f296ad037c728ff",
  },
  {
    name: "qwen3-0.6b",
    title: "Qwen3 0.6B, Q8_0",
    repository: "Qwen/Qwen3-0.6B-GGUF",
    file: "Qwen3-0.6B-Q8_0.gguf",
    sizeBytes: 639_446_688,
    sha256: "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
  },
  {
    name: "qwen3-8b",
    title: "Qwen3 8B, Q4_K_M",
    repository: "Qwen/Qwen3-8B-GGUF",
    file: "Qwen3-8B-Q4_K_M.gguf",
    sizeBytes: 5_027_783_488,
    sha256: "d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785",
  },
  {
    name: "qwen3-30b-a3b",
    title: "Qwen3 30B-A3B Instruct 2507, Q4_K_M",
    repository: "unsloth/Qwen3-30B-A3B-Instruct-2507-GGUF",
    file: "Qwen3-30B-A3B-Instruct-2507-Q4_K_M.gguf",
    sizeBytes: 18_556_686_752,
    sha256: "6c997b8af17debdfb01d890214400ccbab00db6acc0ba8da5de1cc906c4774d0",
  },
  {
    name: "qwen2.5-7b",
    title: "Qwen2.5 7B Instruct, Q4_K_M",
    repository: "bartowski/Qwen2.5-7B-Instruct-GGUF",
    file: "Qwen2.5-7B-Instruct-Q4_K_M.gguf",
    sizeBytes: 4_683_074_240,
    sha256: "65b8fcd92af6b4fefa935c625d1ac27ea29dcb6ee14589c55a8f115ceaaa1423",
  },
  {
    name: "gemma-3-4b",
    title: "Gemma 3 4B it, Q4_K_M",
    repository: "ggml-org/gemma-3-4b-it-GGUF",
    file: "gemma-3-4b-it-Q4_K_M.gguf",
    sizeBytes: 2_489_757_856,
    sha256: "882e8d2db44dc554fb0ea5077cb7e4bc49e7342a1f0da57901c0802ea21a0863",
  },
  {
    name: "gemma-2-2b",
    title: "Gemma 2 2B it, Q4_K_M",
    repository: "bartowski/gemma-2-2b-it-GGUF",
    file: "gemma-2-2b-it-Q4_K_M.gguf",
    sizeBytes: 1_708_582_752,
    sha256: "e0aee85060f168f0f2d8473d7ea41ce2f3230c1bc1374847505ea599288a7787",
  },
  {
    name: "gpt-oss-20b",
    title: "gpt-oss 20B, MXFP4",
    repository: "ggml-org/gpt-oss-20b-GGUF",
    file: "gpt-oss-20b-mxfp4.gguf",
    sizeBytes: 12_109_566_560,
    sha256: "be37a636aca0fc1aae0d32325f82f6b4d21495f06823b5fbc1898ae0303e9935",
  },
  {
    name: "ministral-3-8b",
    title: "Ministral 3 8B Instruct 2512, Q4_K_M",
    repository: "mistralai/Ministral-3-8B-Instruct-2512-GGUF",
    file: "Ministral-3-8B-Instruct-2512-Q4_K_M.gguf",
    sizeBytes: 5_198_911_904,
    sha256: "33e7a72cf5e6e2cfc2f2847075acc013d68bba023e35310cef86b5cf8fdca761",
  },
  {
    name: "phi-4-mini",
    title: "Phi-4 mini Instruct, Q4_K_M",
    repository: "unsloth/Phi-4-mini-instruct-GGUF",
    file: "Phi-4-mini-instruct-Q4_K_M.gguf",
    sizeBytes: 2_491_874_272,
    sha256: "88c00229914083cd112853aab84ed51b87bdf6b9ce42f532d8c85c7c63b1730a",
  },
  {
    name: "smollm3-3b",
    title: "SmolLM3 3B, Q4_K_M",
    repository: "ggml-org/SmolLM3-3B-GGUF",
    file: "SmolLM3-Q4_K_M.gguf",
    sizeBytes: 1_915_305_312,
    sha256: "8334b850b7bd46238c16b0c550df2138f0889bf433809008cc17a8b05761863e",
  },
  {
    name: "granite-3.3-8b",
    title: "Granite 3.3 8B Instruct, Q4_K_M",
    repository: "ibm-granite/granite-3.3-8b-instruct-GGUF",
    file: "granite-3.3-8b-instruct-Q4_K_M.gguf",
  },
  {
    name: "lfm2-1.2b",
    title: "LFM2 1.2B, Q4_K_M",
    repository: "LiquidAI/LFM2-1.2B-GGUF",
    file: "LFM2-1.2B-Q4_K_M.gguf",
    sizeBytes: 730_893_248,
    sha256: "55175400e3f509a9616227afeffd58d87e80b9f628a5d3d54ada884d85221fed",
  },
];

export function catalogEntry(name: string): CatalogEntry | undefined {
  return catalog.find((entry) => entry.name === name.toLowerCase());
}

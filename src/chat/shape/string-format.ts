/** What the formats of JSON schemas look like, as regular expressions. */

const months31 = "(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])";
const months30 = "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)";
const february = "02-(?:0[1-9]|1\\d|2[0-8])";
const date = `[12]\\d{3}-(?:${months31}|${months30}|${february})`;
const hours = "(?:[01]\\d|2[0-3])";
const time = `${hours}:[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-]${hours}:[0-5]\\d)`;
const label = "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?";
const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const hex4 = "[0-9a-f]{4}";

export const formatPatterns: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `${date}T${time}`,
  email: `[a-z0-9]{1,20}(?:[._+-][a-z0-9]{1,20}){0,3}@${label}(?:\\.${label}){1,3}`,
  hostname: `${label}(?:\\.${label}){0,3}`,
  ipv4: `${octet}\\.${octet}\\.${octet}\\.${octet}`,
  ipv6: "(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}",
  uuid: `${hex4}${hex4}-${hex4}-${hex4}-${hex4}-${hex4}${hex4}${hex4}`,
};

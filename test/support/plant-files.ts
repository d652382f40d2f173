const QUOTE = 'a field with a quote needs quotes around it, and each quote in it twice.'
const ID = 'an id is written in digits alone, like 7 or -7.'
const JSON_LINE = 'it is no JSON in UTF-8, or is nested too deep.'
const ID_RULE = '`id` is required and must be a whole number from -9223372036854775808 to 9223372036854775807.'
const TEXT_RULE = 'a string without U+0000 and without unpaired surrogates.'

type PlantLine = string | { readonly id: number; readonly name: string; readonly tag?: string }

/** Files as people and spreadsheets make them, with what `import` and the page both make of each line: the plant, or why not. */
export const PLANT_FILES: readonly (readonly [text: string, lines: Readonly<Record<number, PlantLine>>])[] = [
  ['ID,Name,TAG\r\n21,Rose,red\r\n', { 2: { id: 21, name: 'Rose', tag: 'red' } }],
  ['\ufeff\r\nsep=;\r\n\r\nTag;id;name\r\n;22;Ro,se', { 5: { id: 22, name: 'Ro,se' } }],
  ['"SEP=\t"\nid\tname\n23\t"Ro\tse"\n', { 3: { id: 23, name: 'Ro\tse' } }],
  ['id;name;tag\r\n24;Rose;\r\n;;\r\n"";"";;\r\n;\r\n', { 2: { id: 24, name: 'Rose' } }],
  ['id,name,Name\n1,Rose,Rose\n', { 1: 'the column `Name` is no field of a plant, or is there twice: leave it out.' }],
  ['id;name;colour\n', { 1: 'the column `colour` is no field of a plant, or is there twice: leave it out.' }],
  ['id, name,tag\n1, Rose,red\n', { 1: 'the column ` name` has blanks around it: leave them out.' }],
  ['ID;Name\u00a0;tag\n1;Rose;red\n', { 1: 'the column `Name\u00a0` has blanks around it: leave them out.' }],
  ['"id", "name"\n', { 1: 'the column ` "name"` has blanks around it: leave them out.' }],
  ['ID;Tag\n5;sun\n', { 1: 'the column `name` is missing: begin the file with the line id,name,tag.' }],
  ['name\nRose\n', { 1: 'the column `id` is missing: begin the file with the line id,name,tag.' }],
  ['25;Rose;red\n', { 1: 'it is CSV without its header: begin the file with the line id,name,tag.' }],
  ['Ährenlilie,"7"\n', { 1: 'it is CSV without its header: begin the file with the line id,name,tag.' }],
  [
    'id,name,tag\n1, "Ro,se"\n2,Rose,\t"red"\n3,\u00a0"Ro\n26," ""q"""  , Ivy\n27,"a, ""b"", \n ""c""",\n"28"  ,5" pot,"red"',
    {
      2: QUOTE,
      3: QUOTE,
      4: QUOTE,
      5: { id: 26, name: ' "q"', tag: ' Ivy' },
      6: { id: 27, name: 'a, "b", \n "c"' },
      8: { id: 28, name: '5" pot', tag: 'red' },
    },
  ],
  [
    `id,name\n${['007', '"1,000"', ' 1', '1.0', '9.2E+18', "'12", '-0', '٣', 'x'].map((id) => `${id},Rose`).join('\n')}\n`,
    Object.fromEntries(Array.from({ length: 9 }, (_, at) => [at + 2, ID])),
  ],
  [
    '\ufeff\r\n"id";"name";"tag"\r\n29;"two\r\n\r\n""lines""";sun\r\n\r\n4;"a"b;\n5;\n9223372036854775808;a;\n6;nul\0;\n12;"x',
    {
      3: { id: 29, name: 'two\r\n\r\n"lines"', tag: 'sun' },
      7: QUOTE,
      8: 'it has 2 fields, and the header has 3.',
      9: ID_RULE,
      10: `\`name\` is required and must be ${TEXT_RULE}`,
      11: 'a quoted field in it does not end.',
    },
  ],
  ['[{"id":5,"name":"Moss"}]', { 1: 'the file looks like a JSON array: write each plant in a line of its own.' }],
  [
    '{"id":5}\nFern\n\ufeff{"id":1,"name":"a"}\n{"id":"5","name":"a"}\n{"name":"\\ud800","id":5}\n{"id":5e-1,"name":"a"}\n{"id":5,"name":"a","tag":null}\n \t\r\n{"name":"a","id":300e-1,"x":{"id":[]}}',
    {
      1: `\`name\` is required and must be ${TEXT_RULE}`,
      2: JSON_LINE,
      3: JSON_LINE,
      4: ID_RULE,
      5: `\`name\` is required and must be ${TEXT_RULE}`,
      6: ID_RULE,
      7: `\`tag\` must be left out or be ${TEXT_RULE}`,
      9: { id: 30, name: 'a' },
    },
  ],
]

/* colors.js: the dark and light themes, and the colour of each function: its hue depends on its name, its
 * lightness on its file. Operators have colours of their own. */

const HUES = 24, SHADES = 3;
const SPAN_COLOR = HUES * SHADES, GC_COLOR = SPAN_COLOR + 1, DIM_COLOR = GC_COLOR + 1, OPERATOR_COLOR = DIM_COLOR + 1;
const CHANGE_COLOR = OPERATOR_COLOR + 3; // unchanged, then slower and faster, from little to much
const CHANGES = [0.02, 0.1, 0.3, 0.6]; // shares of the sum of both from which a change has a stronger colour

const THEMES = {
  light: {
    back: '#ffffff', head: '#eef0f4', line: '#d5d8de', text: '#1d2025', faint: '#68707d', accent: '#2563c9',
    label: '#15181d', select: '#15181d', veil: 'rgba(40, 48, 64, .13)', range: 'rgba(37, 99, 201, .13)',
    shade: (hue, shade) => `hsl(${hue} ${[62, 55, 68][shade]}% ${[74, 68, 81][shade]}%)`,
    span: '#4fb3a5', gc: '#e0705f', dim: '#e3e6eb', operators: ['#d9b64a', '#e3c566', '#cfa73c'],
    changes: ['#dcdfe5', '#f8d5cb', '#f3ae99', '#e98568', '#db5d3f', '#d2e1f7', '#a8c5ee', '#7aa6e5', '#4c84d6'],
  },
  dark: {
    back: '#15171c', head: '#22262e', line: '#333843', text: '#dde1e8', faint: '#8d96a5', accent: '#6ea3ff',
    label: '#f3f5f8', select: '#ffffff', veil: 'rgba(0, 0, 0, .45)', range: 'rgba(110, 163, 255, .2)',
    shade: (hue, shade) => `hsl(${hue} ${[38, 34, 42][shade]}% ${[40, 34, 46][shade]}%)`,
    span: '#1f8577', gc: '#b8473a', dim: '#262a32', operators: ['#8a6d14', '#7c6110', '#977a22'],
    changes: ['#3a3f4a', '#57382f', '#79402f', '#9d472f', '#c04e2f', '#2d405e', '#2d4f7e', '#2f60a0', '#3473c4'],
  },
};

let theme = THEMES.light;
let palette = [];

function setTheme(isDark) {
  theme = isDark ? THEMES.dark : THEMES.light;
  document.documentElement.classList.toggle('dark', isDark);
  palette = [];
  for (let hue = 0; hue < HUES; hue++)
    for (let shade = 0; shade < SHADES; shade++) palette.push(theme.shade(hue * 360 / HUES, shade));
  palette.push(theme.span, theme.gc, theme.dim, ...theme.operators, ...theme.changes);
}

function hash(text) {
  let sum = 2166136261;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
  return (sum ^ sum >>> 15) >>> 0;
}

/* Returns the index in the palette for each of NAMES. */
function nameColors(names) {
  return Uint8Array.from(names, ({text, label, file, kind}) => {
    if (kind === 'span' || kind === 'annotation') return SPAN_COLOR;
    if (kind === 'operator') return OPERATOR_COLOR + hash(label) % theme.operators.length;
    if (text === 'Python GC') return GC_COLOR;
    return hash(label) % HUES * SHADES + hash(file) % SHADES;
  });
}

/* Returns the index in the palette for times in two recordings. */
function changeColor(before, after) {
  const change = (after - before) / (before + after || 1), level = CHANGES.filter((share) => Math.abs(change) >= share).length;
  return CHANGE_COLOR + level + (change < 0 && level ? CHANGES.length : 0);
}

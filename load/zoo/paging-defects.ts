/**
 * What known mistakes of a page query cost, by the rows that a database would have to touch.
 * The costs follow measurements on PostgreSQL; no database is needed to be slow in the same shape.
 */

export const PAGING_DEFECTS = [
  'offset',
  'or-form',
  'sort-by-text',
  'generic-plan',
  'millisecond-cursor',
] as const;
export type PagingDefect = (typeof PAGING_DEFECTS)[number];

interface PageWork {
  /** Rows of the tenant before the page, of the window before the page, and of the window from the page on. */
  readonly rowsBefore: number;
  readonly rowsSkipped: number;
  readonly rowsLeft: number;
  readonly resumed: boolean;
}

/** Extra milliseconds of one page. */
export type PageCost = (work: PageWork) => number;

const MS_A_ROW = { offset: 0.0008, orForm: 0.0006, sort: 0.0006, bitmap: 0.0007 };
/** PostgreSQL tries five plans for the parameters at hand before it settles on one for all. */
const CUSTOM_PLANS = 5;
const SHORT_WINDOW_ROWS = 2000;

/** factor makes every row dearer: fewer rows show the same shape. */
export function pageCost(defect: PagingDefect | undefined, factor = 1): PageCost {
  const cost = measuredCost(defect);
  return (work) => cost(work) * factor;
}

function measuredCost(defect: PagingDefect | undefined): PageCost {
  switch (defect) {
    case 'offset':
      return ({ rowsSkipped }) => rowsSkipped * MS_A_ROW.offset;
    case 'or-form':
      // Near the end the planner sees few rows left and turns to the index's other end.
      return ({ resumed, rowsBefore, rowsLeft }) =>
        resumed && rowsLeft > 0.04 * (rowsBefore + rowsLeft) ? rowsBefore * MS_A_ROW.orForm : 0;
    case 'sort-by-text':
      return ({ rowsLeft }) => rowsLeft * MS_A_ROW.sort;
    case 'generic-plan': {
      let shortWindows = 0;
      let generic = false;
      return ({ rowsLeft }) => {
        if (rowsLeft < SHORT_WINDOW_ROWS) shortWindows += 1;
        if (shortWindows >= CUSTOM_PLANS) generic = true;
        return generic ? rowsLeft * MS_A_ROW.bitmap : 0;
      };
    }
    default:
      return () => 0;
  }
}

// Reads an interval log with HdrHistogram's own reader; prints its intervals, then their merged percentile table.

import java.io.File;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

public class Reader {
    public static void main(String[] args) throws Exception {
        HistogramLogReader reader = new HistogramLogReader(new File(args[0]));
        Histogram all = null;
        for (;;) {
            Histogram next = (Histogram) reader.nextIntervalHistogram();
            if (next == null) {
                break;
            }
            System.out.printf("interval %s %d %d %d %d%n", next.getTag(), next.getStartTimeStamp(),
                    next.getEndTimeStamp() - next.getStartTimeStamp(), next.getTotalCount(), next.getMaxValue());
            if (all == null) {
                all = next.copy();
            } else {
                all.add(next);
            }
        }
        all.outputPercentileDistribution(System.out, 5, 1.0);
    }
}

# The mean edit similarity of each mode, and the gains of rg1 over none, in base R:
#
#   repoformer eval --per-task --tasks data/tasks/line.jsonl --format csv -o line.csv
#   Rscript docs/analysis.R line.csv
#
# Only an empty cell is a missing value: a prediction may be the text NA.

path <- commandArgs(trailingOnly = TRUE)[1]
texts <- c(task_id = "character", repository = "character", pred_raw = "character", pred = "character")
scores <- read.csv(path, na.strings = "", colClasses = texts)

print(aggregate(repocoder_es ~ predictions, scores, mean))

wide <- reshape(scores[c("row", "predictions", "repocoder_es")],
                direction = "wide", idvar = "row", timevar = "predictions")
gain <- 100 * (wide$repocoder_es.rg1 - wide$repocoder_es.none)
stopifnot(nrow(wide) == length(unique(scores$row)), !anyNA(gain))
print(summary(gain))

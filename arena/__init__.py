"""What is asked: scenarios, checkers, cells, the runner, results, statistics, publishing, the command line."""

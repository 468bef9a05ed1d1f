"""What any room may need: files through Hadoop, options, disks, columns in Spark SQL, the arguments of a run."""
